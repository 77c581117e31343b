"""The paper's claims, each with our figures and whether they bear it out, from what `results/` holds."""

from collections.abc import Callable

from rich.console import Console
from rich.table import Table

from magnetite.io.record import Record
from magnetite.reproduce import judges
from magnetite.reproduce.cells import Request
from magnetite.reproduce.measured import THRESHOLDS, Found, NotRun, Part, Results

HOLDS, FAILS, MISSING = "holds", "does not hold", "not run"

CLAIMS: dict[str, Callable[[Results], list[Part]]] = {
    "1": judges.magnetic_beats_combinatorial,
    "2": judges.walks_match_on_pairs,
    "3": judges.svd_is_worse,
    "4": judges.appendix,
    "5": judges.walks_need_both,
    "6": judges.sorting_by_encoding,
    "7": judges.sorting_studies,
    "8": judges.batcher,
    "11": judges.orders_restored,
}
"""Whose docstrings are the claims, by their number in the paper's order; 9 and 10 are about code."""

COMMANDS = dict.fromkeys("1234", "figure-playground") | {
    "5": "figure-walks",
    "6": "figure-sorting",
    "7": "figure-q-sweep, figure-gnn",
    "8": "figure-topological-sorts",
    "11": "figure-examples",
}
"""What measures the figures of a claim."""


def reproduce(request: Request) -> None:
    """Judge every claim by what was measured; print the table, write the JSON."""
    if request.only:
        raise ValueError(f"--only {request.only!r} chooses trainings, and claims train nothing: leave it out")
    request.require_results()
    record, results = Record("claims", request.seed), Results(request.out)
    table = Table("", "claim", "our figures", "", title="What the paper claims", show_lines=True)
    rows = {}
    for number, judge in CLAIMS.items():
        text = (judge.__doc__ or "").partition("\n")[0]
        found, missing = _collect(judge(results))
        verdict = _verdict(found, missing)
        lines = [f"{'✓' if part.holds else '✗'} {part.figures}" for part in found]
        lines += [f"– {len(missing)} not run: magnetite reproduce {COMMANDS[number]}"] if missing else []
        table.add_row(number, text, "\n".join(lines), verdict)
        parts_written = [{"figures": part.figures, "holds": part.holds} for part in found]
        rows[number] = {"claim": text, "verdict": verdict, "parts": parts_written, "not_run": missing}
    path = record.write(request.out, {"thresholds": THRESHOLDS, "claims": rows})
    console = Console(soft_wrap=True)
    console.print(table)
    console.print(f"figures: {path}")


def _collect(parts: list[Part]) -> tuple[list[Found], list[str]]:
    found, missing = [], []
    for part in parts:
        try:
            found.append(part())
        except NotRun as error:
            missing.append(str(error))
    return found, missing


def _verdict(found: list[Found], missing: list[str]) -> str:
    """A part that fails decides; else one that was not run leaves the claim open."""
    failing = sum(not part.holds for part in found)
    if failing:
        return f"{FAILS} ({failing} of {len(found)})"
    return MISSING if not found else HOLDS if not missing else f"{HOLDS} as far as run"
