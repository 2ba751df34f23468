"""What a figure shows, read back from its artists, for the tests."""


def titles(figure):
    """The titles of the panels that have one."""
    found = [axes.get_title(loc="left") for axes in figure.axes if axes.axison]
    return [title for title in found if title]


def lines(axes, kind):
    """Name to line of a kind, such as "median", whose lines have the gid "median NAME"."""
    gids = {line.get_gid() or "": line for line in axes.lines}
    return {
        gid.removeprefix(f"{kind} "): line for gid, line in gids.items() if gid.startswith(kind)
    }


def notes(axes):
    """The notes in the corner of a panel, on one line."""
    (text,) = [text for text in axes.texts if text.get_gid() == "notes"]
    return " ".join(text.get_text().split())


def legend(figure):
    """What the legend says above its lines."""
    return figure.legends[0].get_title().get_text()


def words(figure):
    """All that is written in the panels and the legend, apart from titles and axes."""
    found = [text.get_text() for axes in figure.axes for text in axes.texts]
    found += [text.get_text() for text in figure.legends[0].get_texts()]
    return "\n".join([*found, legend(figure)])
