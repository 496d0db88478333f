"""Films: pictures in, the bytes of an H.264 mp4 or of a GIF out (extra `video`).

The only user of PyAV. A film is made in memory: it is small, and whoever writes it to the disk
does so whole or not at all.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from types import ModuleType
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from common.errors import ConfigError, FilmFailed
from common.extras import install_command
from common.moments import Picture

MP4_OPTIONS: Final = {"crf": "27", "preset": "veryfast", "tune": "animation"}
MAX_GIF_COLOURS: Final = 256
_OPAQUE: Final = 255
_RED, _GREEN = 1 << 16, 1 << 8


class Film(Protocol):
    """All pictures of a film have the same size."""

    def add(self, picture: Picture) -> None: ...

    def finish(self) -> bytes:
        """The whole film; nothing can be added any more."""
        ...


def load_pyav() -> ModuleType:
    try:
        import av  # noqa: PLC0415 - an extra that only films need
    except ImportError:
        raise ConfigError(f"films need PyAV; run: {install_command('video')}") from None
    return av


@contextmanager
def _translated(av: ModuleType) -> Iterator[None]:
    try:
        yield
    except av.FFmpegError as error:
        raise FilmFailed(f"the encoder failed: {error}") from error


class Mp4Film:
    """Encodes every picture as it comes, in this thread alone."""

    def __init__(self, *, pictures_per_s: Fraction, height: int, width: int) -> None:
        """H.264 halves the resolution of colours, so both sides must be even."""
        self._av = load_pyav()
        self._file = io.BytesIO()
        self._container = self._av.open(self._file, "w", format="mp4")
        self._stream = self._container.add_stream(
            "libx264", rate=pictures_per_s, options=MP4_OPTIONS
        )
        self._stream.height, self._stream.width = height, width
        self._stream.pix_fmt = "yuv420p"
        # More threads would take cores away from training.
        self._stream.codec_context.thread_count = 1

    def add(self, picture: Picture) -> None:
        with _translated(self._av):
            frame = self._av.VideoFrame.from_ndarray(picture, format="rgb24")
            self._container.mux(self._stream.encode(frame))

    def finish(self) -> bytes:
        with _translated(self._av):
            self._container.mux(self._stream.encode(None))
            self._container.close()
        return self._file.getvalue()


@dataclass(slots=True)
class Palette:
    """The colours of a film in the order in which they appear; of too many the nearest is taken."""

    _places: dict[int, int] = field(default_factory=dict)

    def indices(self, picture: Picture) -> NDArray[np.uint8]:
        """UInt8[height, width]."""
        wide = picture.astype(np.int64)
        codes, inverse = np.unique(
            wide[..., 0] * _RED + wide[..., 1] * _GREEN + wide[..., 2], return_inverse=True
        )
        places = np.array([self._place(int(code)) for code in codes], dtype=np.uint8)
        return places[inverse].reshape(picture.shape[:2])

    def table(self) -> NDArray[np.uint8]:
        """As PyAV takes it: UInt8[256, 4], alpha first."""
        table = np.zeros((MAX_GIF_COLOURS, 4), dtype=np.uint8)
        table[:, 0] = _OPAQUE
        for code, place in self._places.items():
            table[place, 1:] = _rgb(code)
        return table

    def _place(self, code: int) -> int:
        if code not in self._places and len(self._places) < MAX_GIF_COLOURS:
            self._places[code] = len(self._places)
        return self._places[code] if code in self._places else self._nearest(code)

    def _nearest(self, code: int) -> int:
        wanted = np.array(_rgb(code))
        nearest = min(self._places, key=lambda known: np.abs(np.array(_rgb(known)) - wanted).sum())
        return self._places[nearest]


def _rgb(code: int) -> tuple[int, int, int]:
    return code // _RED, code // _GREEN % _GREEN, code % _GREEN


class GifFilm:
    """For places that show no films, as the front page of a repository.

    Kept in memory, a byte per pixel, until all colours are known.
    """

    def __init__(self, *, pictures_per_s: Fraction) -> None:
        self._av = load_pyav()
        self._pictures_per_s = pictures_per_s
        self._palette = Palette()
        self._pictures: list[NDArray[np.uint8]] = []

    def add(self, picture: Picture) -> None:
        self._pictures.append(self._palette.indices(picture))

    def finish(self) -> bytes:
        file = io.BytesIO()
        with _translated(self._av), self._av.open(file, "w", format="gif") as container:
            stream = container.add_stream("gif", rate=self._pictures_per_s)
            stream.height, stream.width = self._pictures[0].shape
            stream.pix_fmt = "pal8"
            for frame in self._frames():
                container.mux(stream.encode(frame))
            container.mux(stream.encode(None))
        return file.getvalue()

    def _frames(self) -> Iterator[object]:
        table = self._palette.table()
        for picture in self._pictures:
            yield self._av.VideoFrame.from_ndarray((picture, table), format="pal8")
