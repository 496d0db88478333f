"""The addresses of the control room. Every name in one is checked before a file is touched."""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
import time
from dataclasses import dataclass, field
from typing import Final

from fastapi import FastAPI, HTTPException, Request
from starlette.responses import Response, StreamingResponse

from common.ids import PEER_ID_PATTERN
from common.logs import RareLog
from common.video_folder import FILM_FILE
from launch.control_room.control_desk import MAX_BODY_BYTES, ControlDesk, describe_controls
from launch.control_room.curves import CurveQuery, draw
from launch.control_room.episode_log import STAGE_PATTERN
from launch.control_room.event_stream import EventStream, SharedEvents, StreamCount
from launch.control_room.film_files import UnsatisfiableRange, find_film
from launch.control_room.json_answers import as_json
from launch.control_room.level_maps import picture_of
from launch.control_room.library import MAX_READERS, Library
from launch.control_room.machines import log_of
from launch.control_room.page_files import PageFile, load_page
from launch.control_room.panels import PANELS
from launch.control_room.prometheus import MAX_RUNS as MAX_EXPOSED
from launch.control_room.prometheus import exposition
from launch.control_room.run_reader import BoundedCache, RunReader
from launch.control_room.safe_files import read_bytes
from launch.control_room.security import App, Guard, Rules

log = logging.getLogger(__name__)

READ: Final = ["GET", "HEAD"]
LOG_LINES: Final = 40
MAX_PICTURE_BYTES: Final = 32 * 1024 * 1024
CACHED_ANSWERS: Final = 64
RUN_LIST: Final = 60
Json = dict[str, object]


@dataclass(slots=True)
class Room:
    """What all requests share."""

    library: Library
    rules: Rules
    streams: StreamCount
    desk: ControlDesk = field(default_factory=ControlDesk)
    answers: BoundedCache = field(default_factory=lambda: BoundedCache(CACHED_ANSWERS))
    life: str = field(default_factory=lambda: secrets.token_hex(4))
    page: dict[str, PageFile] = field(default_factory=load_page)
    events: dict[RunReader, SharedEvents] = field(default_factory=dict)
    rare: RareLog = field(default_factory=RareLog)

    def events_of(self, reader: RunReader) -> SharedEvents:
        known = self.events.get(reader)
        if known is None:
            self.events.clear() if len(self.events) >= MAX_READERS else None
            known = self.events[reader] = SharedEvents(reader, f"{self.life}{secrets.token_hex(2)}")
        return known


def make_app(library: Library, rules: Rules, streams: StreamCount) -> App:
    room = Room(library, rules, streams)
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    add_page(app, room)
    add_runs(app, room)
    add_pictures(app, room)
    add_films(app, room)
    add_controls(app, room)
    return Guard(app, rules)


def answer(content: bytes, media_type: str = "application/json", status: int = 200) -> Response:
    headers = {"cache-control": "no-store"}
    return Response(content, status_code=status, media_type=media_type, headers=headers)


def add_page(app: FastAPI, room: Room) -> None:
    def page_file(request: Request) -> Response:
        file = room.page.get(request.url.path)
        if file is None:
            raise HTTPException(404, "there is nothing at this address")
        headers = {"etag": file.tag, "cache-control": "no-cache"}
        if request.headers.get("if-none-match") == file.tag:
            return Response(status_code=304, headers=headers)
        return Response(file.content, media_type=file.media_type, headers=headers)

    for path in room.page:
        app.add_api_route(path, page_file, methods=READ)


def reader_of(room: Room, run: str) -> RunReader:
    reader = room.library.reader(run)
    if reader is None:
        raise HTTPException(404, "there is no such run")
    reader.look()
    return reader


def add_runs(app: FastAPI, room: Room) -> None:
    @app.api_route("/api/runs", methods=READ)
    def runs(like: str = "") -> Response:
        names = room.library.names(like)
        first = names[:RUN_LIST]
        listed = [{"name": name, "changed_s": room.library.changed_s(name)} for name in first]
        about: Json = {"runs": listed, "total": len(names)}
        about["allow_control"] = room.rules.allow_control
        return answer(as_json({**about, "panels": [panel.to_json() for panel in PANELS]}))

    @app.api_route("/api/runs/{run}/state", methods=READ)
    def state(run: str) -> Response:
        reader = reader_of(room, run)
        return answer(as_json(reader.state()))

    @app.api_route("/api/runs/{run}/curves", methods=READ)
    def curves(run: str, request: Request) -> Response:
        reader = reader_of(room, run)
        query = CurveQuery.of(dict(request.query_params))
        key = (reader.serial, reader.metrics.seen, len(reader.evaluations), query)
        return answer(room.answers.get(key, lambda: as_json(draw(reader, query))))

    @app.api_route("/api/runs/{run}/log/{peer}", methods=READ)
    def log(run: str, peer: str) -> Response:
        reader = reader_of(room, run)
        checked = _match(PEER_ID_PATTERN, peer)
        return answer(as_json({"lines": log_of(reader.paths, checked, LOG_LINES)}))

    @app.get("/api/runs/{run}/events")
    async def events(run: str, request: Request) -> Response:
        reader = await asyncio.to_thread(reader_of, room, run)
        if room.streams.is_full:
            raise HTTPException(503, "too many viewers", {"retry-after": "10"})
        seen = request.headers.get("last-event-id", "")
        return EventStream(room.events_of(reader), room.streams, seen, reader.paths.root.is_dir)

    @app.api_route("/metrics", methods=READ)
    def metrics() -> Response:
        return answer(exposition(active_states(room)).encode(), "text/plain; version=0.0.4")


def active_states(room: Room) -> list[Json]:
    """Of the runs that go on: Prometheus asks for what is now."""
    names = room.library.names_going_on(MAX_EXPOSED)
    readers = [reader for name in names if (reader := room.library.reader(name)) is not None]
    states = [reader.state() for reader in readers if _can_look(room, reader)]
    return [state for state in states if state]


def _can_look(room: Room, reader: RunReader) -> bool:
    """What is odd about one run must not hide the others."""
    name = reader.paths.root.name
    try:
        reader.look()
    except Exception as error:
        if room.rare.allows(name, time.monotonic()):
            log.warning("run cannot be read", extra={"run_name": name}, exc_info=error)
        return False
    return True


def _match(pattern: re.Pattern[str], word: str) -> str:
    if pattern.fullmatch(word) is None:
        raise HTTPException(404, "there is nothing at this address")
    return word


def add_pictures(app: FastAPI, room: Room) -> None:
    @app.api_route("/api/runs/{run}/live", methods=READ)
    def live(run: str, request: Request) -> Response:
        reader = reader_of(room, run)
        words = request.query_params.get("peers", "").split(",")
        peers = [word for word in words if PEER_ID_PATTERN.fullmatch(word)]
        told = {str(row["name"]) for row in _processes(reader)}
        peers = [peer for peer in dict.fromkeys(peers) if peer in told]
        if not reader.state().get("over"):
            reader.live.want(peers)
        return answer(as_json({"actors": reader.live.states(peers)}))

    @app.api_route("/api/runs/{run}/live/{peer}/frame", methods=READ)
    def frame(run: str, peer: str) -> Response:
        reader = reader_of(room, run)
        found = reader.live.frame(_match(PEER_ID_PATTERN, peer))
        if found is None:
            raise HTTPException(404, "this actor shows nothing now")
        return answer(found[1], found[0])

    @app.api_route("/api/runs/{run}/levels", methods=READ)
    def levels(run: str) -> Response:
        reader = reader_of(room, run)
        return answer(as_json({"stages": reader.stages()}))

    @app.api_route("/api/runs/{run}/levels/{stage}", methods=READ)
    def level(run: str, stage: str) -> Response:
        reader = reader_of(room, run)
        return answer(as_json(reader.stage(_match(STAGE_PATTERN, stage))))

    @app.api_route("/api/runs/{run}/levels/{stage}/picture", methods=READ)
    def picture(run: str, stage: str) -> Response:
        reader = reader_of(room, run)
        folder = reader.paths.root / "maps"
        checked = _match(STAGE_PATTERN, stage)
        content = read_bytes(folder / f"{checked}.png", MAX_PICTURE_BYTES)
        if content is None or picture_of(folder, checked) is None:
            raise HTTPException(404, "there is no picture of this stage")
        return answer(content, "image/png")


def add_films(app: FastAPI, room: Room) -> None:
    @app.api_route("/api/runs/{run}/films/{name}", methods=READ)
    def film(run: str, name: str, request: Request) -> Response:
        reader = reader_of(room, run)
        path = reader.paths.videos / _match(FILM_FILE, name)
        try:
            part = find_film(path, request.headers.get("range", ""))
        except UnsatisfiableRange as error:
            headers = {"content-range": f"bytes */{error.size}"}
            raise HTTPException(416, "the film ends before that", headers) from error
        if part is None:
            raise HTTPException(404, "there is no such film")
        headers = {"cache-control": "no-store", **part.headers}
        status = 206 if part.is_partial else 200
        return StreamingResponse(part.pieces(), status, headers, part.media_type)


def _processes(reader: RunReader) -> list[Json]:
    rows = reader.state().get("processes")
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def add_controls(app: FastAPI, room: Room) -> None:
    @app.api_route("/api/runs/{run}/controls", methods=READ)
    def controls(run: str) -> Response:
        reader = reader_of(room, run)
        told = describe_controls(reader.paths, allowed=room.rules.allow_control)
        return answer(as_json(told))

    @app.post("/api/runs/{run}/control")
    async def control(run: str, request: Request) -> Response:
        if not request.headers.get("content-type", "").startswith("application/json"):
            raise HTTPException(415, "send application/json")
        body = b""
        async for piece in request.stream():
            body += piece
            if len(body) > MAX_BODY_BYTES:
                raise HTTPException(413, "the request is too large")
        reader = await asyncio.to_thread(reader_of, room, run)
        address = request.client.host if request.client else "unknown"
        status, told = await asyncio.to_thread(room.desk.change, reader.paths, body, address)
        return answer(as_json(told), status=status)
