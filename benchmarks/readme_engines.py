"""Rows of the README's table: encodings, their engines, and data."""

from measured import Row, result


def rows() -> list[Row]:
    """Correctness, speed on processor and GPU, large graphs, data, source code."""
    return [*_correctness(), *_processor(), *_gpu(), *_large(), *_data(), *_code()]


def _correctness() -> list[Row]:
    checked = result("verification")
    errors = checked["largest_errors"]
    worst = {kind: max(values.values()) for kind, values in errors.items()}
    figure = f"none fails; {worst['torch.float32']:.0e} in float32, {worst['torch.float64']:.0e} in float64"
    examples = {row["graph"]: row["one_way_edges_in_order"] for row in result("figure-examples")["rows"]}
    restored = [
        name for name in ("sequence", "balanced binary tree", "trumpet (fully connected)") if examples[name] == 1
    ]
    return [
        (
            f"{checked['graphs']:,} odd digraphs of 1–150 nodes: largest residual or unitarity error",
            "the definition",
            figure,
            "benchmarks/verification.py",
        ),
        (
            "order of permuted nodes from `Im γ₀`",
            "the paper",
            f"restored: {', '.join(restored)}",
            "magnetite reproduce figure-examples",
        ),
    ]


def _processor() -> list[Row]:
    measured = result("benchmark-encodings")["rows"]
    sizes = " / ".join(measured)
    command = "benchmarks/encodings.py"
    numpy, pyg = (" / ".join(f"{row[f'times_{side}']:.1f}×" for row in measured.values()) for side in ("numpy", "pyg"))
    failed = sum(row["pyg_failures"] for row in measured.values())
    return [
        (f"magnetic eigenpairs, 2 cores, n {sizes}", "NumPy `eigh` in two threads", f"{numpy} faster", command),
        ("same graphs", f"PyG's `AddLaplacianEigenvectorPE` (fails on {failed})", f"{pyg} faster", command),
    ]


def _gpu() -> list[Row]:
    measured = result("benchmark-eigen-gpu")["rows"]
    chosen = [row for row in measured if row["n"] in (33, 80, 128, 256)]
    sizes = " / ".join(str(row["n"]) for row in chosen)
    wrong = sum(row["ours_double_wrong"] + row["ours_single_wrong"] for row in measured)
    command = "benchmarks/eigen_gpu.py"
    encoded = result("benchmark-sorting-encoded")
    first, second = (encoded[run]["seconds_together"] for run in ("first", "second"))
    return [
        (
            f"the same on an H200, float64, n {sizes}",
            "`torch.linalg.eigh` there",
            " / ".join(f"{row['double_against_torch']:.0f}×" for row in chosen) + f" faster, {wrong} wrong",
            command,
        ),
        (
            "float32",
            "JAX's batched `eigh` there",
            " / ".join(f"{row['single_against_jax']:.1f}×" for row in chosen) + " faster",
            command,
        ),
        (
            f"{encoded['second']['graphs']:,} sorting networks drawn and encoded, k=25, H200",
            "",
            f"{second:.0f} s ({first:.0f} s with compilation)",
            "benchmarks/sorting_encoded.py",
        ),
    ]


def _large() -> list[Row]:
    found = []
    for name in ("debian", "random"):
        measured = result(f"benchmark-large-{name}")["eigenpairs"]
        what = f"{measured['nodes']:,} nodes, {measured['edges']:,} edges ({name}), {measured['k']} pairs, 2 cores"
        ended = "" if measured["arpack"]["finished"] else "at least "
        figure = f"{ended}{measured['times_faster']:.1f}× faster: {measured['ours']['seconds']:.0f} s"
        found.append((what, "SciPy's ARPACK", figure, "benchmarks/large.py"))
    return found


def _data() -> list[Row]:
    networks, sets = result("benchmark-sorting"), result("benchmark-data")
    playground = sets["playground, directed distance, cpu"]
    return [
        (
            "sorting networks drawn, lengths 7–11 / 16, one core",
            "sets of inputs in NumPy",
            f"{networks['7–11']['ratio']:,.0f}× / {networks['16']['ratio']:,.0f}× faster",
            "benchmarks/sorting.py",
        ),
        (
            f"{playground['graphs']:,} playground graphs with distances, 2 cores",
            "",
            f"{playground['seconds']:.1f} s",
            "benchmarks/data.py",
        ),
    ]


def _code() -> list[Row]:
    measured = result("benchmark-code-graphs")
    library, packages = (measured[corpus] for corpus in ("standard library", "installed packages"))
    counts = [corpus["counts"] for corpus in (library, packages)]
    functions, failed = (sum(count.get(key, 0) for count in counts) for key in ("functions", "dataflow failed"))
    texts = result("reorderings")["f1_score"]
    return [
        (
            f"data-flow graphs of {functions:,} functions (standard library / installed packages), one core",
            "the authors' 162 a second",
            f"{library['times_authors']:.1f}× / {packages['times_authors']:.1f}× faster, {failed} failed",
            "benchmarks/code_graphs.py",
        ),
        (
            f"{texts['texts']:,} ways to write the paper's `f1_score`",
            f"{texts['ast']:,} sequential graphs",
            f"{texts['dataflow']} data-flow graph",
            "benchmarks/reorderings.py",
        ),
    ]
