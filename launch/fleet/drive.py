"""One start on a cluster, from the first order to the last line of the summary."""

from __future__ import annotations

import os
import time

from common.errors import ExitCode
from launch.fleet.desk import Desk
from launch.fleet.fleet import Fleet
from launch.fleet.home import FleetHome
from launch.fleet.orders import Plain
from launch.live_view import View, open_view
from launch.session import POLL_S, SHOW_INTERVAL_S, Session, prewarm

STATUS_INTERVAL_S = 1.0


def drive(session: Session, fleet: Fleet, home: FleetHome) -> ExitCode:
    """Run everything to its end; how it ended."""
    desk = Desk(session.paths)
    view = open_view(session.console, plain=session.plain)
    desk.open()
    with session.exporting():
        try:
            if session.settings.env.env_prewarm:
                prewarm(session)
            _watch(session, fleet, home, desk, view)
        finally:
            view.close()
            session.console.print("stopping: actors, learner, replay server", highlight=False)
            fleet.stop()
            desk.close()
    _explain(session, fleet)
    if fleet.outcome is not None:
        return fleet.outcome
    return ExitCode.DONE if session.out_of_time() else session.stop.exit_code


def _watch(session: Session, fleet: Fleet, home: FleetHome, desk: Desk, view: View) -> None:
    shown_s = status_s = -SHOW_INTERVAL_S
    while not (session.stop.is_set() or session.out_of_time() or fleet.outcome is not None):
        fleet.tick()
        home.tell_learner()
        while fleet.news:
            session.say(fleet.news.pop(0))
        now = session.elapsed_s
        if now - shown_s >= SHOW_INTERVAL_S:
            shown_s = now
            session.show(view, fleet.rows())
        if now - status_s >= STATUS_INTERVAL_S:
            status_s = now
            actors = desk.take_wish()
            if actors is not None:
                session.say(f"{actors} actors are wanted now")
                fleet.scale(actors)
            desk.write_status(describe(fleet))
        time.sleep(POLL_S)


def describe(fleet: Fleet) -> Plain:
    """For `cluster.py status`."""
    return {
        "pid": os.getpid(),
        "wanted": fleet.wish.actors,
        "actors": fleet.total,
        "least": fleet.least,
        "most": fleet.most,
        "nodes": [
            {
                "node": node.name,
                "address": node.facts.address,
                "cores": node.facts.cores,
                "home": node.is_home,
                "actors": len(node.actors),
                "running": sum(row["state"] == "running" for row in node.report.rows),
                "restarts": sum(int(str(row["restarts"])) for row in node.report.rows),
                "problem": node.problem,
            }
            for node in fleet.nodes.values()
        ],
    }


def _explain(session: Session, fleet: Fleet) -> None:
    for line in fleet.summary():
        session.say(line)
    if fleet.outcome in (None, ExitCode.DONE):
        return
    console = session.console
    console.print(f"the run ended: {fleet.reason}", style="red", markup=False)
    for line in fleet.blame:
        console.print(f"  {line}", markup=False, highlight=False, soft_wrap=True)
