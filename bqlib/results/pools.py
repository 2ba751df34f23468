"""Labels of the pools of candidates of several experiments."""

import json


def pool_labels(pools):
    """A label for the pool of each experiment: what differs between them, in words.

    Parameters
    ----------
    pools : list of dict
        The ``candidates`` of each sweep.

    Returns
    -------
    list
        The sizes, or texts if more than the size differs; empty if all pools are the same.

    Examples
    --------
    >>> from bqlib.results.pools import pool_labels
    >>> pool_labels([{"size": 1000, "source": "target"}, {"size": 100, "source": "target"}])
    [1000, 100]
    >>> pool_labels([{"size": 100, "source": "target"}, {"size": 100, "source": "inflated"}])
    ['target', 'inflated']
    """
    keys = [key for key in pools[0] if any(pool.get(key) != pools[0][key] for pool in pools)]
    if keys in ([], ["size"]):
        return [pool["size"] for pool in pools] if keys else []
    words = [[_of_pool(key, pool.get(key)) for key in keys] for pool in pools]
    return [" ".join(word for word in own if word) for own in words]


def _of_pool(key, value):
    """One setting of a pool in a word."""
    if key in ("size", "source"):
        return str(value)
    if key == "fresh":
        return "fresh" if value else "kept"
    if key == "box":  # the source names it
        return "" if value is None else json.dumps(value)
    return f"{key} {json.dumps(value)}"


def by_size(labels, configs):
    """Each label once, that of the smallest pool first."""
    sizes = {}
    for label, config in zip(labels, configs, strict=True):
        sizes.setdefault(label, config["candidates"]["size"])
    return sorted(sizes, key=sizes.get)
