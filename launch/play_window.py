"""Episodes in a window of their own. Tk comes with Python, but not with every Python."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Final

from common.errors import ConfigError
from common.film_pictures import FILM_HEIGHT, FILM_WIDTH, film_picture
from common.moments import Moment, Picture
from launch.game_keys import keys_in
from launch.play_terminal import QUIT, Display

if TYPE_CHECKING:
    import tkinter

TITLE: Final = "Warp Zone"
POLL_S: Final = 0.02
ARROWS: Final = {"Left": "left", "Right": "right", "Up": "up", "Down": "down"}
INSTEAD: Final = "leave out --window to see it in the terminal, or use --video FILE.mp4"


def load_tk() -> ModuleType:
    try:
        import tkinter  # noqa: PLC0415 - not every Python has it
    except ImportError as error:
        raise ConfigError(f"this Python has no Tk ({error}); {INSTEAD}") from error
    return tkinter


def require_window() -> None:
    """Before anything is loaded: whether a window can be opened."""
    tk = load_tk()
    try:
        tk.Tk().destroy()
    except tk.TclError as error:
        raise ConfigError(f"no window can be opened: {error}; {INSTEAD}") from error


class Window:
    """The picture of a film, the game at twice its size and what the agent thinks, and notes."""

    def __init__(self, root: tkinter.Tk) -> None:
        tk = load_tk()
        self._root = root
        self._pressed: list[str] = []
        self._picture: tkinter.PhotoImage = tk.PhotoImage(
            master=root, width=FILM_WIDTH, height=FILM_HEIGHT
        )
        self._notes: tkinter.Label = tk.Label(root, anchor="w", padx=8)
        root.title(TITLE)
        root.resizable(width=False, height=False)
        tk.Label(root, image=self._picture, borderwidth=0).pack()
        self._notes.pack(fill="x")
        root.bind("<Key>", self._press)
        # Closing the window is having had enough; it is taken away when the episode has stopped.
        root.protocol("WM_DELETE_WINDOW", lambda: self._pressed.append(QUIT))

    def draw(self, moment: Moment, notes: Sequence[str]) -> None:
        self._picture.configure(data=as_ppm(film_picture(moment)), format="ppm")
        self._notes.configure(text="   ".join(" ".join(note.split()) for note in notes if note))
        self._root.update()

    def keys(self, wait_s: float = 0.0) -> list[str]:
        end_s = time.monotonic() + wait_s
        self._root.update()
        while not self._pressed and time.monotonic() < end_s:
            time.sleep(POLL_S)
            self._root.update()
        pressed, self._pressed = self._pressed, []
        return pressed

    def _press(self, event: tkinter.Event[tkinter.Misc]) -> None:
        arrow = ARROWS.get(event.keysym)
        self._pressed += [arrow] if arrow else keys_in(event.char)


def as_ppm(picture: Picture) -> bytes:
    """The one format of pixels that every Tk reads."""
    height, width = picture.shape[:2]
    return b"P6 %d %d 255\n" % (width, height) + picture.tobytes()


@contextmanager
def in_window() -> Iterator[Display]:
    """A window until the end of the block."""
    tk = load_tk()
    try:
        root = tk.Tk()
        try:
            yield Window(root)
        finally:
            root.destroy()
    except tk.TclError as error:
        raise ConfigError(f"the window was lost: {error}; {INSTEAD}") from error
