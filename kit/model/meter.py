"""What a call uses, readable while it goes on and after whatever ended it."""

from collections.abc import Callable

from kit.model.chat import Usage

Gauge = Callable[[], Usage | None]


class Meter:
    """The meter of one call. Whoever may cut the call short keeps it, and reads it then.

    tries    how many were begun.
    failed   what the tries before the last one used, where the server said so or had begun to answer.
    model    the name of the model that serves, as far as the server has said; else "".
    """

    def __init__(self) -> None:
        self.tries = 0
        self.failed: list[Usage] = []
        self.model = ""
        self._gauge: Gauge | None = None

    @property
    def used(self) -> Usage | None:
        """What the last try has used by now: reported, or estimated; None where nothing is known of."""
        return self._gauge() if self._gauge is not None else None

    def begin(self, gauge: Gauge) -> None:
        """A try begins; `gauge` says what it has used."""
        if (before := self.used) is not None:
            self.failed.append(before)
        self.tries += 1
        self._gauge = gauge

    def follow(self, gauge: Gauge) -> None:
        """From now on `gauge` says what the try has used."""
        self._gauge = gauge

    def end(self, used: Usage | None, model: str = "") -> None:
        """The try has ended and used this."""
        self._gauge = lambda: used
        self.model = model or self.model
