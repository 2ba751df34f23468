"""Formulas in running text, for a page that can raise and lower letters."""

import re

# In this order: words that stand for a letter, powers, and indices of single letters and sums.
_WORDS = {"eps": "ε", "sum_": "Σ_", "sqrt(": "√("}
_MARK = re.compile(
    r"\^(\([^()]*\)|-?\d+(?:[./]\d+)?|-?[A-Za-z](?![A-Za-z]))"
    r"|(?<=(?<![\w.])[A-Za-zΣ])_([A-Za-z0-9])(?!\w)"
)


def in_parts(text):
    """A text with formulas as (kind, words): kind is "", "up" or "down".

    Examples
    --------
    >>> from bqlib.report.formulas import in_parts
    >>> in_parts("MMD^2 falls as n^-a")
    [('', 'MMD'), ('up', '2'), ('', ' falls as n'), ('up', '-a')]
    >>> in_parts("sum_m k(x, x_m), herding_bq")
    [('', 'Σ'), ('down', 'm'), ('', ' k(x, x'), ('down', 'm'), ('', '), herding_bq')]
    """
    for word, letter in _WORDS.items():
        text = re.sub(rf"(?<!\w){re.escape(word)}", letter, text)
    parts, last = [], 0
    for found in _MARK.finditer(text):
        parts.append(("", text[last : found.start()]))
        parts.append(("up", found[1]) if found[1] else ("down", found[2]))
        last = found.end()
    parts.append(("", text[last:]))
    return [part for part in parts if part[1]]
