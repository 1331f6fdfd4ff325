"""Figures of benchmarks in the tables of documents: what scripts/bench/cpu and scripts/bench/gpu share."""
import re
import sys


def three_digits(value):
    digits = 3 if value < 1 else 2 if value < 10 else 1 if value < 100 else 0
    return f"{value:.{digits}f}"


def the_row(result, run, matches, what):
    """The one row of a run for which `matches` holds; `what` says it in words."""
    rows = [row for row in result["rows"] if matches(row)]
    if len(rows) != 1:
        sys.exit(f"bench: {run} has {len(rows)} rows \"{what}\"; the tables of this script are out of date")
    return rows[0]


def replace(text, cells, column, figure, file):
    """`text` with cell `column` of the one row that begins with `cells` replaced."""
    start = r"^\| " + r" \| ".join(map(re.escape, cells)) + r" \|.*$"
    rows = re.findall(start, text, re.MULTILINE)
    if len(rows) != 1:
        sys.exit(f"bench: {file} has {len(rows)} rows that begin with {cells}; the tables of this script are out of date")
    parts = rows[0].strip("|").split("|")
    parts[column] = f" {figure} "
    return text.replace(rows[0], "|" + "|".join(parts) + "|")


def replace_phrase(text, pattern, figure, file):
    """`text` with the one group of the one match of `pattern` replaced."""
    matches = list(re.finditer(pattern, text))
    if len(matches) != 1:
        sys.exit(f"bench: {file} has {len(matches)} phrases like \"{pattern}\"; the tables of this script are out of date")
    begin, end = matches[0].span(1)
    return text[:begin] + figure + text[end:]
