#!/usr/bin/env python3
"""Draws latency.svg: success and smoothness over latency, three ways to decide.

The input is latency.tsv beside this file: way, latency, success in %, jerk, jump. Each line is one call of
    mjpolicy evaluate --checkpoint assets/pusht_image --sampler ddim --steps 10 --episodes 100 --latency L [WAY] --out DIR
with WAY: chunks `--action-steps 8`, every step nothing (as the checkpoint says), prefix `--prefix --warm-start 1`.
"""
import pathlib

HERE = pathlib.Path(__file__).parent
COLOURS = {"chunks": "#1f6fb2", "every step": "#8a8a8a", "prefix": "#b2541f"}
PANELS = [("success, %", 2, 0, 100), ("jerk", 3, 0, None), ("jump where a chunk begins", 4, 0, None)]
LEFT, TOP, WIDTH, HEIGHT, GAP = 60, 50, 250, 190, 60


def rows():
    lines = (HERE / "latency.tsv").read_text().splitlines()[1:]
    return [(w, int(l), float(s), float(j), float(b)) for w, l, s, j, b in (line.split("\t") for line in lines)]


def panel(index, title, column, low, high, data):
    left = LEFT + index * (WIDTH + GAP)
    high = high or 1.1 * max(row[column] for row in data)
    x = lambda latency: left + latency / 8 * WIDTH
    y = lambda value: TOP + HEIGHT - (value - low) / (high - low) * HEIGHT
    out = [f'<text x="{left}" y="{TOP - 12}">{title}</text>']
    for i in range(5):
        value = low + (high - low) * i / 4
        out.append(f'<line x1="{left}" y1="{y(value):.1f}" x2="{left + WIDTH}" y2="{y(value):.1f}" stroke="#ddd"/>')
        out.append(f'<text x="{left - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{value:.0f}</text>')
    for latency in range(9):
        out.append(f'<text x="{x(latency):.1f}" y="{TOP + HEIGHT + 16}" text-anchor="middle">{latency}</text>')
    for way, colour in COLOURS.items():
        points = " ".join(f"{x(row[1]):.1f},{y(row[column]):.1f}" for row in data if row[0] == way)
        out.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
    return out


def draw(data):
    width, height = LEFT + len(PANELS) * (WIDTH + GAP), TOP + HEIGHT + 50
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="12">',
           f'<rect width="{width}" height="{height}" fill="white"/>']
    for i, (way, colour) in enumerate(COLOURS.items()):
        out.append(f'<text x="{LEFT + 110 * i}" y="18" fill="{colour}" font-weight="bold">{way}</text>')
    for i, (title, column, low, high) in enumerate(PANELS):
        out += panel(i, title, column, low, high, data)
    out.append(f'<text x="{LEFT}" y="{height - 8}">latency, control steps of 0.1 s</text></svg>')
    return "\n".join(out) + "\n"


if __name__ == "__main__":
    (HERE / "latency.svg").write_text(draw(sorted(rows(), key=lambda row: row[1])))
