"""The console as an ASGI application: pages, REST API and files, behind the guard."""

from pathlib import Path
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from penstock.clock import Clock, SystemClock
from penstock.config.oidc import is_https
from penstock.console.api import api_routes
from penstock.console.audit import Audit
from penstock.console.change import Changes
from penstock.console.changes.table import CHANGES
from penstock.console.guard import Gate, Guard, unrouted
from penstock.console.jobs import Jobs
from penstock.console.login import BrowserLogin
from penstock.console.messages.pages import MessagePages
from penstock.console.messages.routes import MessageApi
from penstock.console.messages.service import Messages
from penstock.console.oidc.login import OidcLogin
from penstock.console.pages import ConsolePages
from penstock.console.render import environment
from penstock.console.watch import ClusterWatch
from penstock.http.access import HttpAccess

if TYPE_CHECKING:
    from penstock.console.oidc.provider import Provider

STATIC = Path(__file__).parent / "static"


def console(
    watch: ClusterWatch,
    access: HttpAccess,
    *,
    audit: Audit | None = None,
    jobs: Jobs | None = None,
    clock: Clock | None = None,
    messages: Messages | None = None,
    provider: "Provider | None" = None,
) -> Starlette:
    clock = clock or SystemClock()
    audit, jobs = audit or Audit(None, clock), jobs or Jobs(clock)
    messages = messages or Messages(watch.client, clock)
    is_behind_tls = provider is not None and is_https(provider.config.redirect_uri)
    templates, gate = environment(), Gate(access, clock, is_behind_tls=is_behind_tls)
    templates.globals["watch"] = watch
    routes: list[Route | Mount] = [
        *BrowserLogin(gate, templates, audit, has_provider=provider is not None).routes(),
        *OidcLogin(gate, templates, audit, provider).routes(),
        *ConsolePages(watch, templates, audit, jobs).routes(),
        *api_routes(watch, audit, jobs),
        *MessagePages(watch, messages, templates, audit).routes(),
        *MessageApi(watch, messages).routes(),
        *Changes(watch, audit, jobs, templates, CHANGES).routes(),
        Mount("/static", StaticFiles(directory=STATIC)),
    ]
    return Starlette(
        routes=routes,
        middleware=[Middleware(Guard, gate=gate, routes=routes)],
        exception_handlers={HTTPException: unrouted},
    )
