"""An authorization server of the lab's own: signed tokens (OIDC client credentials), and the key to check them."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

ALLOWED_URLS = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
KEY_ID = "lab"
VALID_SECONDS = 600


class TokenServer:
    """Listens on 127.0.0.1 between `start` and `stop`; `clients` are ids and secrets. A token's subject is the id.

    `valid_seconds` is how long the tokens live that it hands out from now on, `handed_out` how many they are, and
    `last_ends` when the last of them does. `die` and `live` stop and start it again on the same port.
    """

    own_classes = None

    def __init__(self, clients: Mapping[str, str]) -> None:
        self.valid_seconds = VALID_SECONDS
        self.handed_out, self.last_ends = 0, 0.0
        self._allowed = {_basic(name, secret): name for name, secret in clients.items()}
        self._key = rsa.generate_private_key(65537, 2048)
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server._answer(self, 200, server._keys())

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                who = server._allowed.get(self.headers.get("Authorization", ""))
                if who is None:
                    server._answer(self, 401, {"error": "invalid_client", "error_description": "no such client"})
                else:
                    server._answer(self, 200, server._token(who))

            def log_message(self, *_: object) -> None:
                pass

        self._handler = Handler
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._port = self._server.server_port
        self.token_url, self.keys_url = (f"http://127.0.0.1:{self._port}/{name}" for name in ("token", "keys"))
        self._thread: Thread | None = None

    @property
    def jvm_flags(self) -> tuple[str, ...]:
        """What brokers' Java is started with: since Kafka 4.0 they ask no server that is not named there."""
        return (f"-D{ALLOWED_URLS}={self.keys_url}",)

    @property
    def logins(self) -> dict[str, dict[str, str]]:
        """What a broker is set to, by mechanism."""
        package = "org.apache.kafka.common.security.oauthbearer"
        settings = {
            "sasl.jaas.config": f"{package}.OAuthBearerLoginModule required;",
            "sasl.server.callback.handler.class": f"{package}.OAuthBearerValidatorCallbackHandler",
            "sasl.oauthbearer.jwks.endpoint.url": self.keys_url,
            # A token is over when it says so, and so is a connection that was let in by it.
            "sasl.oauthbearer.clock.skew.seconds": "0",
            "connections.max.reauth.ms": "3600000",
        }
        return {"OAUTHBEARER": settings}

    def start(self) -> TokenServer:
        self._thread = Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        return self

    def stop(self) -> None:
        """Take no connections any more."""
        if self._thread is not None:
            self._server.shutdown()
            self._thread.join()
            self._thread = None
        self._server.server_close()

    die = stop

    def live(self) -> None:
        """Be there again, if it died."""
        if self._thread is None:
            self._server = ThreadingHTTPServer(("127.0.0.1", self._port), self._handler)
            self.start()

    def _token(self, subject: str) -> dict[str, Any]:
        now = int(time.time())
        self.handed_out += 1
        # Counted from the next whole second, so that none lives shorter than it says.
        self.last_ends = now + 1 + self.valid_seconds
        claims = {"sub": subject, "iss": "lab", "iat": now, "exp": self.last_ends, "scope": "kafka"}
        head = {"alg": "RS256", "typ": "JWT", "kid": KEY_ID}
        signed = ".".join(_base64(json.dumps(part).encode()) for part in (head, claims))
        signature = self._key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        token = f"{signed}.{_base64(signature)}"
        return {"access_token": token, "token_type": "Bearer", "expires_in": self.valid_seconds}

    def _keys(self) -> dict[str, Any]:
        public = self._key.public_key().public_numbers()
        key = {"kty": "RSA", "use": "sig", "alg": "RS256", "kid": KEY_ID}
        return {"keys": [key | {"n": _base64(_bytes(public.n)), "e": _base64(_bytes(public.e))}]}

    @staticmethod
    def _answer(request: BaseHTTPRequestHandler, status: int, document: Mapping[str, Any]) -> None:
        body = json.dumps(document).encode()
        request.send_response(status)
        request.send_header("Content-Type", "application/json")
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)


def _basic(name: str, secret: str) -> str:
    return "Basic " + base64.b64encode(f"{name}:{secret}".encode()).decode()


def _base64(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def _bytes(number: int) -> bytes:
    return number.to_bytes((number.bit_length() + 7) // 8, "big")
