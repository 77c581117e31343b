import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # the notebook trains a model, beside other programs

project = "magnetite"
author = "the magnetite authors"
copyright = "2026, the magnetite authors"
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "extension",
]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = "cache"  # notebooks are stored without outputs
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_output_stderr = "remove"  # progress of training
html_theme = "furo"
html_title = "magnetite"
html_math_renderer = "mathml"  # no script from elsewhere
exclude_patterns = ["_build"]
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # shapes and types are in the descriptions of the arguments
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True
default_role = "code"
smartquotes = False  # `--option` is not a dash
nitpicky = False
suppress_warnings = ["misc.highlighting_failure"]
