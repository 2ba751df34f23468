"""What is wrong with the files of a submission, by row."""

from bqlib.results.text import printable

MOST_SHOWN = 50


class SubmissionError(ValueError):
    """A submission that cannot be scored.

    Attributes
    ----------
    problems : tuple of str
        Each as ``file:line: message``; the error's text has one per line. At most 50 are told; the
        last one counts the rest.
    """

    def __init__(self, *problems):
        super().__init__(*problems)
        self.problems = problems

    def __str__(self):
        return "\n".join(self.problems)


class Mistakes:
    """The first messages, and the number of all."""

    def __init__(self):
        self.count, self._told = 0, []

    @property
    def full(self):
        """Whether more of them are only counted, so that no text is needed."""
        return self.count >= MOST_SHOWN

    def add(self, file, line, text):
        """Take in what is wrong at a line of a file; 0 is the file as a whole."""
        self.count += 1
        if self.count <= MOST_SHOWN:
            place = f"{file}:{line}" if line else file
            self._told.append(f"{place}: {printable(' '.join(text.split()))}")

    def told(self):
        """The messages; the last one counts those that are not told."""
        more = self.count - MOST_SHOWN
        return [*self._told, *([f"and {more} more"] if more > 0 else [])]

    def refuse(self, error=SubmissionError):
        """Raise an error if there is anything."""
        if self.count:
            raise error(*self.told())
