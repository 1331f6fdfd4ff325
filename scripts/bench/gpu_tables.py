"""Where the figures of scripts/bench/gpu stand in README.md and docs/PERFORMANCE.md."""
import json
import re
import sys

from tables import replace, replace_phrase, the_row, three_digits

README, PERFORMANCE = "README.md", "docs/PERFORMANCE.md"
# memory's bytes and tensor cores' fp16 operations a second, from the makers' data sheets
LIMITS = {"NVIDIA H100 80GB HBM3": (3.35e12, 989e12), "NVIDIA H200": (4.8e12, 989e12)}
CHAIN, WINDOW_16 = "U-Net pass in a chain", "ddpm 100 in fp16, window of 16, tolerance 0.0125"
NOTEBOOK_CHUNKS = {"one step after the other": "loop, ddpm 100, step by step", "window of 8": "loop, ddpm 100, window of 8",
                   "window of 16": "loop, ddpm 100, window of 16", "window of 32": "loop, ddpm 100, window of 32"}


class Figure:
    """A cell of a table and the row of a run that fills it."""

    def __init__(self, cells, column, run, name, key="median_ms", factor=1, where="", file=PERFORMANCE, form="{}"):
        self.cells, self.column, self.file, self.form = cells, column, file, form
        self.run, self.name, self.key, self.factor, self.where = run, name, key, factor, where

    def value(self, results):
        row = row_of(results, self.run, self.name, self.where)
        if self.key == "passes":
            return re.match(r"([\d.]+) passes", row["note"])[1].removesuffix(".0")
        return three_digits(self.factor * row[self.key])


def row_of(results, run, name, where=""):
    matches = lambda row: row.get("name", row.get("implementation")) == name and where in f"{row.get('caches')} {row.get('batch')}"
    return the_row(results[run], run, matches, name)


def timed(cells, column, run, name, **keywords):
    """The median and, in the next column, p99."""
    return [Figure(cells, column, run, name, **keywords), Figure(cells, column + 1, run, name, "p99_ms", **keywords)]


def chunk_figures():
    figures = []
    for cells, run in ((("80 M", "one step after the other"), "chunk_fp16"), (("80 M", "window of 16, the default"), "chunk_fp16"),
                       (("80 M", "window of 32"), "chunk_window_32"),
                       *((("80 M, " + each, "window of 16"), "chunk_" + each) for each in ("bf16", "tf32", "fp32")),
                       (("80 M, 2 environments", "window of 16"), "chunk_batch_2"),
                       (("80 M, 4 environments", "window of 8"), "chunk_batch_4"),
                       (("80 M, 32 environments", "one step after the other, the default"), "chunk_batch_32")):
        name = NOTEBOOK_CHUNKS[cells[1].removesuffix(", the default")]
        figures += [Figure(cells, 2, run, name, "passes"), *timed(cells, 3, run, name)]
    for network, run in (("76 M trained", "parallel_76M"), ("shipped", "parallel_shipped"), ("263 M trained", "parallel_263M")):
        for how, name in (("one step after the other", "ddpm 100 in fp16, step by step"), ("window of 16", WINDOW_16)):
            figures += [Figure((network, how), 2, run, name, "passes"), *timed((network, how), 3, run, name)]
    for how, name in (("CUDA graph", "graph"), ("eager", "eager")):
        figures += timed(("80 M, PyTorch 2.11", f"{how}, fp16"), 3, "chunk_fp16", f"torch, {name} fp16: chunk, 100 steps")
    return figures


def decision_figures():
    figures = []
    for cells, run in ((("76 M trained", "DDPM 100, window", "rasteriser"), "decision_76M"),
                       (("76 M trained", "DDPM 100, window", "MuJoCo, EGL"), "decision_76M_mujoco"),
                       (("80 M", "DDPM 100, window", "rasteriser"), "decision_ddpm"),
                       (("80 M", "DDPM 100, window", "MuJoCo, EGL"), "decision_mujoco"),
                       (("80 M", "DDIM 10", "rasteriser"), "decision_ddim"),
                       (("263 M trained", "DDPM 100, window", "rasteriser"), "decision_263M"),
                       (("263 M", "DDPM 100, window", "rasteriser"), "decision_lerobot"),
                       (("shipped", "DDIM 10", "rasteriser"), "decision_shipped_ddim"),
                       (("shipped", "DDPM 100, window", "rasteriser"), "decision_shipped_ddpm"),
                       (("its student", "one pass", "rasteriser"), "decision_student"),
                       (("shipped, code for 8.0", "DDIM 10", "rasteriser"), "decision_shipped_code_80"),
                       (("80 M, code for 8.0", "DDIM 10", "rasteriser"), "decision_80M_code_80")):
        figures += timed(cells, 3, run, "decision")
    columns = ("decision_ddpm", "decision_76M", "decision_ddim", "decision_shipped_ddim")
    for stage, name in (("upload", "hand-over"), ("render",) * 2, ("prepare",) * 2, ("encode",) * 2, ("film",) * 2,
                        ("denoise",) * 2, ("fetch",) * 2):
        figures += [Figure((stage,), 1 + i, run, name, factor=1000) for i, run in enumerate(columns)]
    figures += timed(("ACT, one 480x640 picture", "none", "given"), 3, "transformers", "picture to chunk, batch 1", where="act")
    figures += timed(("ACT, one 480x640 picture", "none", "given, page-locked"), 3, "transformers", "page-locked picture to chunk, batch 1", where="act")
    figures += timed(("DiT", "DDPM 100", "given"), 3, "transformers", "picture to chunk, batch 1", where="dit")
    figures += timed(("DiT", "DDIM 10", "given"), 3, "dit_ddim", "picture to chunk, batch 1")
    figures += timed(("DiT, from its features", "DDPM 100", "none"), 3, "transformers", "features to chunk, batch 1")
    for cells, name in ((("ACT, PyTorch's graph, fp16", "none", "given, on the GPU"), "ACT, pictures on the GPU to chunks, batch 1"),
                        (("DiT, PyTorch's graph, fp16", "DDPM 100", "none"), "DiT, features to chunk, 100 steps")):
        figures += timed(cells, 3, "transformers", "torch, graph fp16: " + name)
    for what, row, run in (("a decision of it on an H200, DDIM 10", "decision", "decision_shipped_ddim"),
                           ("a decision of its [student of one pass](assets/pusht_image_onestep/README.md) on an H200", "decision",
                            "decision_student"),
                           ("a decision of a policy of 76 M parameters on an H100, DDPM 100 [2]", "decision", "decision_76M")):
        figures.append(Figure((what,), 1, run, row, file=README, form="{} ms"))
    return figures


def pass_figures():
    figures = []
    for rows in ("1", "16", "32", "48"):
        figures.append(Figure((rows,), 1, f"pass_{rows}", f"{CHAIN}, batch {rows}", factor=1000))
    for rows in ("16", "32", "48", "256", "1024"):  # one row has the row kernel
        figures.append(Figure((rows,), 2, f"pass_{rows}", f"U-Net pass, batch {rows}", factor=1000, where="loop"))
    for rows in ("1", "16", "32", "256", "1024"):
        figures.append(Figure((rows,), 3, f"pass_{rows}", f"torch, graph fp16: U-Net pass, batch {rows}", factor=1000))
    for column, network in ((4, "shipped"), (5, "compact"), (6, "lerobot-128")):
        figures += [Figure((rows,), column, f"pass_{network}_{rows}", f"{CHAIN}, batch {rows}", factor=1000)
                    for rows in ("1", "16", "32", "48")]
    for label, frames, run in (("encoder (ResNet-18), 2 frames", 2, "pass_1"), ("encoder, 32 frames", 32, "pass_16"),
                               ("encoder, 512 frames", 512, "pass_256"), ("encoder, 2048 frames", 2048, "pass_1024")):
        figures.append(Figure((label,), 1, run, f"encoder, {frames} frames", factor=1000, where="loop"))
        figures.append(Figure((label,), 2, run, f"torch, graph fp16: encoder, {frames} frames", factor=1000))
    figures.append(Figure(("encoder of the shipped policy, 2 frames",), 1, "pass_shipped_1", "encoder, 2 frames", factor=1000,
                          where="loop"))
    figures.append(Figure(("rasteriser, 1024 frames",), 1, "pictures", "rasteriser", factor=1000))
    figures.append(Figure(("MuJoCo's renderer through EGL, one picture",), 1, "pictures", "MuJoCo's renderer, faithful", factor=1000))
    return figures


def other_figures():
    figures = [Figure((label,), 1, run, "self-check", form="{} ms")
               for label, run in (("self-check at load, shipped", "load_shipped"), ("self-check at load, 80 M", "load_80M"))]
    for pictures, label in (("1", "one 32x32 picture"), ("512", "512 pictures")):
        for who, name in (("image-diffusion", "graph:1"), ("libtorch, CUDA graph, fp16", "reference-graph-contiguous")):
            figures.append(Figure((f"{who}, {label}, a step of 1000",), 1, "images", name, "step_ms", where=f" {pictures}", form="{} ms"))
    return figures


# the beginning of a roofline's line: bytes, operations, run and row that they bound
ROOFLINES = {"16 passes of 80 M": (16 * 122e6, 0, "chunk_fp16", NOTEBOOK_CHUNKS["window of 16"]),
             "12.5 passes of 263 M": (12.5 * 526e6, 0, "parallel_263M", WINDOW_16),
             "a decision of 80 M, DDPM 100": (16 * 122e6 + 51e6, 0, "decision_ddpm", "decision"),
             "16 rows of 80 M": (122e6, 0, "pass_16", f"{CHAIN}, batch 16"),
             "1024 rows of 80 M, bound by tensor cores": (122e6, 594e9, "pass_1024", "U-Net pass, batch 1024"),
             "the encoder, 2 frames": (22e6, 0, "pass_1", "encoder, 2 frames"),
             "1024 rasterised frames": (28e6, 0, "pictures", "rasteriser")}


# what stands in a sentence of README.md: a pattern with one group, run and row
PHRASES = [(r"The steps alone take ([\d.]+) ms so", "parallel_76M", WINDOW_16),
           (r"and\s+([\d.]+) ms one after the other", "parallel_76M", "ddpm 100 in fp16, step by step"),
           (r"PyTorch's CUDA graph takes ([\d.]+) ms", "chunk_fp16", "torch, graph fp16: chunk, 100 steps")]


def roofline(results, gpu, what):
    moved, operations, run, name = ROOFLINES[what]
    rate, products = LIMITS[gpu]
    floor = 1e3 * max(moved / rate, operations / products)
    row = row_of(results, run, name, "loop" if "batch 1024" in name or "frames" in name else "")
    return f"{three_digits(floor)} ms; measured {three_digits(row['median_ms'])}; gap {row['median_ms'] / floor:.1f}"


def read(out):
    """The results by run, and where they come from: GPU, driver and commit of all."""
    results, places = {}, set()
    for file in sorted(out.glob("*.json")):
        result = json.loads(file.read_text())
        if "rows" not in result:
            continue
        results[file.stem] = result
        gpu = result.get("gpu", result.get("device", "")).split(" (overridden")[0]
        places.add((gpu, result["version"].split("\n")[0].partition("+")[2]))
    if len(places) != 1:
        sys.exit(f"bench/gpu: the runs in {out} are of several GPUs or commits: {sorted(places)}; measure all anew")
    gpu, commit = places.pop()
    if gpu not in LIMITS:
        sys.exit(f"bench/gpu: LIMITS in scripts/bench/gpu_tables.py does not know the memory's speed of {gpu}; add it")
    if not commit or commit.endswith("-dirty"):
        sys.exit(f"bench/gpu: the runs are of changed sources, version \"{commit}\"; commit, build and measure anew")
    drivers = {result["driver"] for result in results.values() if "driver" in result}
    return results, gpu, ", ".join(sorted(drivers)), commit


def evaluation_seconds(out, sampler, gpu, commit):
    """What 1000 episodes took on this GPU at this commit."""
    text, run = out / f"episodes_{sampler}.txt", out / f"episodes-{sampler}/run.json"
    again = f"measure anew with --only episodes_{sampler}; nothing was written"
    for file in (text, run):
        if not file.exists():
            sys.exit(f"bench/gpu: there is no {file}; {again}")
    time = re.search(r"^time +([\d.]+) s", text.read_text(), re.MULTILINE)
    if time is None:
        sys.exit(f"bench/gpu: {text} has no line \"time\": its evaluation failed; {again}")
    facts = json.loads(run.read_text())
    version, backend = facts.get("version", ""), facts.get("backend", "")
    if version.partition("+")[2] != commit or f", {gpu}, " not in backend:
        sys.exit(f"bench/gpu: {run} is of {version} on {backend}, the other runs are of {commit} on {gpu}; {again}")
    return time[1]


def refuse_other_gpus(texts, gpu):
    """The words around the figures name a GPU too, and those are corrected by hand."""
    for file, text in texts.items():
        for number, line in enumerate(text.splitlines(), 1):
            for words, model in re.findall(r"\b((?:on an|on the|one NVIDIA) ([A-Z]+\d+))", line):
                if model not in gpu.split():
                    sys.exit(f"bench/gpu: {file}:{number} says \"{words}\", the runs are of {gpu}; correct it there, and where "
                             "gpu_tables.py has its words; nothing was written")


def write(root, out):
    """Replaces every figure; nothing is written where one is missing."""
    results, gpu, driver, commit = read(out)
    for result in results.values():  # rows of two suites may have one name
        for row in result["rows"]:
            row["caches"] = f"{row.get('caches', '')} {row.get('suite', '')}"
    texts = {name: (root / name).read_text() for name in (README, PERFORMANCE)}
    for figure in chunk_figures() + decision_figures() + pass_figures() + other_figures():
        if figure.run not in results:
            sys.exit(f"bench/gpu: {out} has no run {figure.run}; nothing was written")
        value = figure.form.format(figure.value(results))
        texts[figure.file] = replace(texts[figure.file], figure.cells, figure.column, value, figure.file)
    for sampler, words in (("ddim", "DDIM 10"), ("ddpm", "DDPM 100")):
        texts[PERFORMANCE] = replace(texts[PERFORMANCE], [f"1000 episodes, shipped policy, chunks of 8, {words}, 16 host cores"], 1,
                                     evaluation_seconds(out, sampler, gpu, commit) + " s", PERFORMANCE)
    for what in ROOFLINES:
        texts[PERFORMANCE] = replace_phrase(texts[PERFORMANCE], re.escape(what) + r": ([\d.]+ ms; measured [\d.]+; gap \d+(?:\.\d+)?)",
                                            roofline(results, gpu, what), PERFORMANCE)
    for pattern, run, name in PHRASES:
        value = three_digits(row_of(results, run, name)["median_ms"])
        texts[README] = replace_phrase(texts[README], pattern, value, README)
    texts[PERFORMANCE] = replace_phrase(texts[PERFORMANCE], r"\* \*\*GPU\*\*: one (.*?, commit \w+)",
                                        f"{gpu}, driver {driver}, commit {commit[:7]}", PERFORMANCE)
    refuse_other_gpus(texts, gpu)
    for file, text in texts.items():
        (root / file).write_text(text)
    print(f"figures of {gpu}, commit {commit[:7]}")
    return 0
