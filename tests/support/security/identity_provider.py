"""A small identity provider (OpenID Connect) on loopback, which can be made to misbehave."""

import hashlib
import threading
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, parse_qsl, unquote, urlencode, urlsplit

import jwt
import msgspec

from support.security.tokens import own_key_set, token

CLIENT = "penstock-console"
SECRET = "s3cr&t:+"


class IdentityProvider:
    """Logs everybody in with `claims`. Codes work once, and only with PKCE's verifier."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.keys = own_key_set()
        self.claims: dict[str, Any] = {"sub": "alice"}
        self.signing: dict[str, Any] = {}
        self.said: dict[str, Any] = {}
        """Replaces parts of the provider's metadata; None removes one."""
        self.answers: dict[str, bytes] = {}
        """Complete responses by path, used instead; b"" means status 500."""
        self.asked: list[str] = []
        self._codes: dict[str, dict[str, str]] = {}

    def log_in(self, location: str) -> str:
        """Acts as the browser: returns the address to which the provider redirects it."""
        endpoint, _, query = location.partition("?")
        assert endpoint == f"{self.url}/authorize"
        given = dict(parse_qsl(query))
        assert (given["response_type"], given["client_id"]) == ("code", CLIENT)
        assert given["code_challenge_method"] == "S256"
        assert "openid" in given["scope"].split()
        code = f"code-{len(self._codes)}"
        self._codes[code] = given
        return f"{given['redirect_uri']}?{urlencode({'code': code, 'state': given['state']})}"

    def answer(self, path: str, body: bytes, authorization: str) -> bytes | None:
        """The response body; None if the request is refused."""
        self.asked.append(path)
        if path in self.answers:
            return self.answers[path] or None
        match path:
            case "/.well-known/openid-configuration":
                said = {
                    "issuer": self.url,
                    "authorization_endpoint": f"{self.url}/authorize",
                    "token_endpoint": f"{self.url}/token",
                    "jwks_uri": f"{self.url}/keys",
                    **self.said,
                }
                return msgspec.json.encode({k: v for k, v in said.items() if v is not None})
            case "/keys":
                return self.keys
            case "/token":
                return self._tokens(body, authorization)
            case _:
                return None

    def _tokens(self, body: bytes, authorization: str) -> bytes | None:
        form = {name: values[0] for name, values in parse_qs(body.decode()).items()}
        begun = self._codes.pop(form["code"], None)
        if begun is None or form["grant_type"] != "authorization_code":
            return None
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        if urlsafe_b64encode(digest).decode().rstrip("=") != begun["code_challenge"]:
            return None
        if form["redirect_uri"] != begun["redirect_uri"]:
            return None
        if authorization:
            pair = b64decode(authorization.removeprefix("Basic ")).decode()
            client, secret = map(unquote, pair.split(":"))
        else:
            client, secret = form["client_id"], form.get("client_secret", "")
        if (client, secret) != (CLIENT, SECRET):
            return None
        claims = {"iss": self.url, "aud": CLIENT, "nonce": begun["nonce"], **self.claims}
        if self.signing.get("algorithm") == "none":
            parts = ({"alg": "none"}, claims)
            encoded = [jwt.utils.base64url_encode(msgspec.json.encode(each)) for each in parts]
            return msgspec.json.encode({"id_token": b".".join([*encoded, b""]).decode()})
        return msgspec.json.encode({"id_token": token(**claims, **self.signing)})


@contextmanager
def identity_provider(host: str = "127.0.0.1") -> Iterator[IdentityProvider]:
    """With `localhost`, a browser treats it as another site than a console on 127.0.0.1."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            size = int(self.headers.get("Content-Length", "0"))
            path = urlsplit(self.path).path
            if path == "/authorize":  # a page as people see it, from which the browser is sent back
                back = escape(provider.log_in(provider.url + self.path))
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.end_headers()
                self.wfile.write(
                    f'<link rel="icon" href="data:,"><a href="{back}">I am Alice</a>'.encode()
                )
                return
            given = self.headers.get("Authorization", "")
            answer = provider.answer(path, self.rfile.read(size), given)
            self.send_response(500 if answer is None else 200)
            self.end_headers()
            self.wfile.write(answer or b"")

        do_POST = do_GET  # noqa: N815 - so http.server calls it

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        provider = IdentityProvider(f"http://{host}:{server.server_port}")
        serving = threading.Thread(target=server.serve_forever, args=[0.05])
        serving.start()
        try:
            yield provider
        finally:
            server.shutdown()
            serving.join()
