"""Asks the pages of a query's parts, and gives the token of `web.token_file` to nobody else."""

from __future__ import annotations

import urllib.request
from http.client import HTTPResponse
from typing import Any

from evenflow.settings.sections.web import WebSettings
from monitoring.web.guard import token_of
from monitoring.web.tls import client_context


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: what is asked goes to the address that was asked, and nowhere else."""

    def redirect_request(self, *_: Any) -> None:
        """Make no further request."""
        return


class PageClient:
    """Opens pages over the transport of the settings. named: whether the user named their addresses.

    An address in telemetry is one that whoever can write there has chosen, and on a port of this machine
    anybody may listen. So only an address that the user named gets the token in any case. Others get it only
    over TLS and only where `web.tls_ca` is set: to have a certificate of any of the system's authorities
    proves nothing. Raises ConfigError if a file of `[web]` cannot be used.
    """

    scheme: str
    """`http` or `https`."""
    withheld: bool
    """Whether there is a token that these pages do not get."""

    def __init__(self, web: WebSettings, *, named: bool = False) -> None:
        context = client_context(web)
        # No proxy either: the pages are in the pipeline's own network.
        handlers: list[urllib.request.BaseHandler] = [urllib.request.ProxyHandler({}), _NoRedirect()]
        if context is not None:
            handlers.append(urllib.request.HTTPSHandler(context=context))
        self._opener = urllib.request.build_opener(*handlers)
        self.scheme = web.scheme
        proven = context is not None and web.tls_ca is not None
        self.withheld = web.token_file is not None and not proven and not named
        if web.token_file is not None and not self.withheld:
            self._opener.addheaders.append(("Authorization", f"Bearer {token_of(web.token_file)}"))

    def open(self, place: str, path: str, *, patience: float) -> HTTPResponse:
        """The answer to a request for this path. place: `host:port`. patience: seconds to wait for each part
        of the answer.

        Raises HTTPError for any status but success, OSError or HTTPException if there is no answer, and
        ValueError for a place that is none.
        """
        response: HTTPResponse = self._opener.open(f"{self.scheme}://{place}{path}", timeout=patience)
        return response
