#!/usr/bin/env python3
"""Draws megakernel_timeline.svg: a CTA of the U-Net megakernel over two layers and two row batches.

The lengths of the phases are the readings of megakernel_timeline.json, taken with one row batch. Their
order is that of the kernel's waits: the MMA warps take a batch when its input has arrived and they are
free, the epilogue warps when its partial sums have arrived. Run it after changing the readings.
"""
import json
import pathlib

HERE = pathlib.Path(__file__).parent
SHOWN, BEFORE = 2, 3  # layers drawn; layers before them, until the order repeats
BATCHES = 2
COLOURS = {"mma": ("#1f6fb2", "#7fb3dc"), "send": ("#124a79", "#4f8cbc"), "epilogue": ("#b2541f", "#dca37f"),
           "partial sums": ("#777777", "#bbbbbb"), "activations": ("#777777", "#bbbbbb"),
           "weights": ("#3c8a3c", "#3c8a3c")}


def schedule(cycles):
    """Bars (lane, phase, batch, layer, begin, end) of all layers."""
    bars, mma_free, epilogue_free = [], 0, 0
    arrived = [0] * BATCHES  # when the input of each batch has
    for layer in range(BEFORE + SHOWN):
        begin = None
        for batch in range(BATCHES):
            start = max(mma_free, arrived[batch])
            begin = start if begin is None else begin
            multiplied = start + cycles["mma"]
            mma_free = multiplied + cycles["send"]
            sums = mma_free + cycles["partial sums"]
            finish = max(epilogue_free, sums)
            epilogue_free = finish + cycles["epilogue"]
            arrived[batch] = epilogue_free + cycles["activations"]
            bars += [("MMA warps", "mma", batch, layer, start, multiplied),
                     ("MMA warps", "send", batch, layer, multiplied, mma_free),
                     (f"exchange, batch {batch}", "partial sums", batch, layer, mma_free, sums),
                     ("epilogue warps", "epilogue", batch, layer, finish, epilogue_free),
                     (f"exchange, batch {batch}", "activations", batch, layer, epilogue_free, arrived[batch])]
        bars.append(("copy engine", "weights", 0, layer, begin, arrived[0]))
    return bars


def draw(readings):
    kind = readings["drawn"]
    cycles = {phase: sum(range_) / 2 for phase, range_ in readings["layers"][kind].items()}
    bars = schedule(cycles)
    first = min(b[4] for b in bars if b[3] == BEFORE)
    last = max(b[5] for b in bars)
    bars = [b for b in bars if b[5] > first]
    lanes = ["MMA warps", "epilogue warps", "exchange, batch 0", "exchange, batch 1", "copy engine"]
    left, top, width, height, gap = 150, 46, 900, 30, 12
    x = lambda t: left + (max(t, first) - first) / (last - first) * width
    bottom = top + len(lanes) * (height + gap)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 20}" height="{bottom + 64}" '
           'font-family="sans-serif" font-size="12">',
           '<rect width="100%" height="100%" fill="white"/>',
           f'<text x="{left}" y="20" font-size="14">A CTA over two layers of {kind}, two row batches '
           '(dark: batch 0, light: batch 1)</text>']
    for i, lane in enumerate(lanes):
        y = top + i * (height + gap)
        out.append(f'<text x="{left - 10}" y="{y + 20}" text-anchor="end">{lane}</text>')
        for _, phase, batch, layer, begin, end in (b for b in bars if b[0] == lane):
            label = "next layer's weights" if phase == "weights" else phase
            begin, end = x(begin), x(end)
            out.append(f'<rect x="{begin:.1f}" y="{y}" width="{end - begin:.1f}" height="{height}" '
                       f'fill="{COLOURS[phase][batch]}" stroke="white"><title>{label}, layer {layer - BEFORE + 1}, '
                       f'batch {batch}</title></rect>')
            if end - begin > 7 * len(label):
                out.append(f'<text x="{(begin + end) / 2:.1f}" y="{y + 20}" text-anchor="middle" '
                           f'fill="white">{label}</text>')
    for t in range(0, int(last - first), 1000):
        out.append(f'<line x1="{x(first + t):.1f}" x2="{x(first + t):.1f}" y1="{top - 6}" y2="{bottom}" '
                   'stroke="#dddddd"/>'
                   f'<text x="{x(first + t):.1f}" y="{bottom + 14}" text-anchor="middle">{t}</text>')
    out += [f'<text x="{left + width}" y="{bottom + 32}" text-anchor="end">cycles</text>',
            f'<text x="{left}" y="{bottom + 50}" fill="#555555">Constructed from one-batch readings '
            f'of c025ab4, not measured with two batches. Order: the waits of the kernel.</text>', '</svg>', '']
    return "\n".join(out)


if __name__ == "__main__":
    readings = json.loads((HERE / "megakernel_timeline.json").read_text())
    (HERE / "megakernel_timeline.svg").write_text(draw(readings))
