#!/usr/bin/env python3
"""Draws megakernel_timeline.svg: one decision of the GPU backend, whose denoising chain is one launch.

The input is what this command writes, beside this file; run the script after a new reading.
    mjpolicy profile --network notebook --backend cuda --batch 16 --sampler ddim --steps 10 --decisions 3 \\
        --kernels --trace docs/figures/megakernel_timeline.json
"""
import json
import pathlib
import re

HERE = pathlib.Path(__file__).parent
DECISION = 1  # which one is drawn; the first warms up
LANES = [("stages", "stages"), ("kernels", "kernels"), ("denoising steps", "passes")]
COLOURS = {"stages": ("#1f6fb2", "#4f8cbc"), "kernels": ("#8a8a8a", "#b5b5b5"), "megakernel": ("#b2541f", "#b2541f"),
           "denoising steps": ("#3c8a3c", "#6fae6f")}
SHORT = {"pass and step": "pass"}
LEFT, TOP, WIDTH, HEIGHT, GAP = 80, 46, 920, 26, 6


def spans_of(trace):
    """Spans (track, name, line, begin, end) of the drawn decision, microseconds from its begin."""
    spans = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    decision = [s for s in spans if s["cat"] == "control loop" and s["name"] == "decision"][DECISION]
    begin, end = decision["ts"], decision["ts"] + decision["dur"]
    inside = [s for s in spans if s["cat"] in dict(LANES) and begin <= s["ts"] < end]
    return [(s["cat"], s["name"], s["tid"], s["ts"] - begin, s["ts"] + s["dur"] - begin) for s in inside], end - begin


def label_of(name):
    """A kernel's name without namespace and template arguments."""
    return SHORT.get(name, re.sub(r"<.*", "", name).split("::")[-1])


def draw(trace):
    spans, length = spans_of(trace)
    rows = [(cat, line) for cat, _ in LANES for line in sorted({s[2] for s in spans if s[0] == cat})]
    x = lambda t: LEFT + t / length * WIDTH
    bottom = TOP + len(rows) * (HEIGHT + GAP)
    facts = trace["otherData"]
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 20}" height="{bottom + 58}" '
           'font-family="sans-serif" font-size="11">', '<rect width="100%" height="100%" fill="white"/>',
           f'<text x="{LEFT}" y="20" font-size="14">One decision for 16 robots: the denoising chain is one launch</text>']
    for t in range(0, int(length) + 1, 100):
        out.append(f'<line x1="{x(t):.1f}" x2="{x(t):.1f}" y1="{TOP - 6}" y2="{bottom}" stroke="#dddddd"/>'
                   f'<text x="{x(t):.1f}" y="{bottom + 14}" text-anchor="middle">{t}</text>')
    for i, (cat, line) in enumerate(rows):
        y = TOP + i * (HEIGHT + GAP)
        if i == 0 or rows[i - 1][0] != cat:
            out.append(f'<text x="{LEFT - 8}" y="{y + 17}" text-anchor="end">{dict(LANES)[cat]}</text>')
        for n, (_, name, _, begin, end) in enumerate(s for s in spans if (s[0], s[2]) == (cat, line)):
            label = label_of(name)
            colour = COLOURS["megakernel" if "UnetMegakernel" in name else cat][n % 2]
            width = x(end) - x(begin)
            out.append(f'<rect x="{x(begin):.1f}" y="{y}" width="{max(width, 0.5):.1f}" height="{HEIGHT}" fill="{colour}">'
                       f'<title>{label}: {end - begin:.1f} us</title></rect>')
            if width > 6 * len(label):
                out.append(f'<text x="{(x(begin) + x(end)) / 2:.1f}" y="{y + 17}" text-anchor="middle" '
                           f'fill="white">{label}</text>')
    out += [f'<text x="{LEFT + WIDTH}" y="{bottom + 30}" text-anchor="end">microseconds from the call</text>',
            f'<text x="{LEFT}" y="{bottom + 46}" fill="#555555">Readings of mjpolicy profile on one {facts["gpu"]}, '
            f'{facts["version"].splitlines()[0]}, U-Net 256/512/1024, fp16, DDIM 10. Kernels overlap: each waits for '
            'the one before.</text>', '</svg>', '']
    return "\n".join(out)


if __name__ == "__main__":
    trace = json.loads((HERE / "megakernel_timeline.json").read_text())
    (HERE / "megakernel_timeline.svg").write_text(draw(trace))
