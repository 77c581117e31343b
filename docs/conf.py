import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

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
nb_execution_mode = "off"  # the notebook is run by the tests, and stored without outputs
html_theme = "furo"
html_title = "magnetite"
html_math_renderer = "mathml"  # no script from elsewhere
exclude_patterns = ["_build"]
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # shapes and types are in the descriptions of the arguments
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True
default_role = "code"
nitpicky = False
suppress_warnings = ["misc.highlighting_failure"]
