"""Rows of the README's table: models and trainings."""

from measured import Row, content, result

from magnetite.reproduce.cells import figures_of
from magnetite.reproduce.sorting import LENGTHS


def rows() -> list[Row]:
    """Models, the paper's trainings, and what goes beyond them."""
    return [*_models(), *_training(), *_best()]


def _models() -> list[Row]:
    measured = result("benchmark-models")
    figures = []
    for rows_of_task in measured.values():
        compiled = {row["side"]: row for row in rows_of_task if row["compiled"]}
        figures.append(f"{compiled['magnetic']['graphs_per_second']:,.0f} ({compiled['magnetic']['of_bare']:.2f})")
    return [
        (
            f"graphs/s forward + backward with magnetic encodings, H200, {' / '.join(measured)}",
            "the bare transformer on random tensors",
            f"{' / '.join(figures)} of its speed",
            "benchmarks/models.py",
        )
    ]


def _training() -> list[Row]:
    step = result("benchmark-training")["sorting"]["magnetic"]
    sorting = result("figure-sorting")
    trained = {name: values for name, values in sorting["accuracy"].items() if None not in values}
    seen = {cell["graphs_seen"] for cell in sorting["cells"].values()}
    lengths = f"{sorting['lengths'][0]}–{sorting['lengths'][-1]}"
    others = "; ".join(f"{name} {_percents(values)}" for name, values in trained.items() if name != "magnetic")
    return [
        (
            "graphs/s of whole training steps, sorting networks with magnetic encodings, H200",
            "the bare transformer on batches that stand ready",
            f"{step['graphs_per_second']:,.0f} ({step['of_bare']:.2f}) of its speed",
            "benchmarks/training.py",
        ),
        (
            f"accuracy on sorting networks of lengths {lengths}, {min(seen):,} graphs of lengths 7–11 seen",
            others,
            f"magnetic {_percents(trained['magnetic'])}",
            "magnetite reproduce figure-sorting",
        ),
        _whole_run(),
        _playground("reachability", "F1", ".3f"),
        _playground("directed-distance", "RMSE", ".2f"),
        _claims(),
        _tokens(),
        _quick(),
    ]


def _whole_run() -> Row:
    run = content("repeat/cells/sorting-magnetic-63045b1e9a78")
    minutes, seconds = divmod(round(run["seconds"]), 60)
    figures = figures_of(run)
    return (
        "magnetic once more from the same seed, no other training on the H200: how far trainings differ, and wall time",
        "",
        f"{_percents([figures[f'accuracy/{length}'] for length in LENGTHS])}; {minutes} min {seconds} s with "
        "drawing, encoding, compilation and evaluations",
        "magnetite reproduce figure-sorting --only sorting-magnetic --out results/repeat",
    )


def _playground(target: str, measure: str, digits: str) -> Row:
    """One target in DAGs and in general digraphs, by encoding."""
    found = result("figure-playground")
    places = [found["columns"].index(f"{target} {kind} {measure.lower()}") for kind in ("dag", "general")]
    shown = {
        name: " / ".join(f"{found['rows'][name][place]:{digits}}" for place in places)
        for name in ("magnetic", "walks", "laplacian", "svd")
    }
    seen = found["cells"][f"playground-{target}-dag-magnetic"]["graphs_seen"]
    return (
        f"{measure} of the playground's {target.replace('-', ' ')}, DAGs / general digraphs, {seen:,} graphs seen",
        "; ".join(f"{name} {values}" for name, values in shown.items() if name != "magnetic"),
        f"magnetic {shown['magnetic']}",
        "magnetite reproduce figure-playground",
    )


def _claims() -> Row:
    claims = result("claims")["claims"]
    parts = [part["holds"] for claim in claims.values() for part in claim["parts"]]
    whole = [number for number, claim in claims.items() if claim["verdict"] == "holds"]
    return (
        "comparisons that the paper's claims 1–8 and 11 make",
        "the paper",
        f"{sum(parts)} of {len(parts)} come out as it says; claims {', '.join(whole)} in all of theirs",
        "magnetite reproduce claims",
    )


def _tokens() -> Row:
    measured = result("benchmark-tokens-cpu")
    return (
        f"whole training steps on a CPU: {' / '.join(measured)}",
        "the same with empty slots",
        " / ".join(f"{row['times_as_fast']:.2f}×" for row in measured.values()) + " faster",
        "benchmarks/tokens.py",
    )


def _best() -> list[Row]:
    networks, distances = result("figure-best-sorting"), result("figure-best-distance")
    trained, sides = networks["cells"]["best-sorting"], result("benchmark-relations")["sides"]
    return [
        (
            f"accuracy on lengths 12–16, {trained['graphs_seen']:,} graphs seen",
            f"the paper's transformer here {_percents(result('figure-sorting')['accuracy']['magnetic'])}",
            f"relations of wires {_percents(networks['accuracy']['best-sorting'])}",
            "magnetite reproduce figure-best-sorting",
        ),
        (
            "graphs/s forward + backward of relations of wires, H200",
            f"a loop of plain tensor operations, as one CUDA graph: {sides['loop']['graphs_per_second']:,.0f}",
            f"{sides['fused']['graphs_per_second']:,.0f}: {sides['fused']['times_as_fast']:.0f}× faster",
            "benchmarks/relations.py",
        ),
        (
            f"RMSE of directed distances in DAGs, {distances['cells']['best-playground']['graphs_seen']:,} graphs seen",
            f"the paper's transformer with magnetic encodings here {_rmse('figure-playground', 'magnetic'):.3f}",
            f"{_rmse('figure-best-distance', 'best-playground'):.4f}",
            "magnetite reproduce figure-best-distance",
        ),
    ]


def _rmse(figure: str, row: str) -> float:
    """The error of directed distances in DAGs."""
    found = result(figure)
    column = "directed-distance dag rmse" if figure == "figure-playground" else "rmse"
    return found["rows"][row][found["columns"].index(column)]


def _quick() -> Row:
    quick = result("figure-quick-sorting")
    area, seen = quick["auc"], quick["cells"]["quick-sorting-relations"]["graphs_seen"]
    return (
        f"AUC on the same lengths after minutes on a CPU, {seen:,} graphs of lengths 7–8 seen",
        f"attention over nodes, magnetic {_percents(area['quick-sorting-attention'])} (50 is guessing)",
        f"relations of wires {_percents(area['quick-sorting-relations'])}",
        "magnetite reproduce figure-quick-sorting",
    )


def _percents(shares: list[float]) -> str:
    return " / ".join(f"{100 * share:.1f}" for share in shares) + " %"
