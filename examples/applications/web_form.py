"""A web form whose answers become records: each submission is acknowledged by the brokers first.

python examples/applications/web_form.py 127.0.0.1:9092 answers 8000
"""

import html
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

from penstock.sdk import STRING, Json, Producer, SdkError

FORM = """<form method="post"><input name="name" placeholder="Name" required>
<textarea name="text" required></textarea><button>Send</button></form>"""
MOST_BYTES = 10_000


def server(bootstrap: str, topic: str, port: str = "8000") -> ThreadingHTTPServer:
    producer = Producer({"bootstrap.servers": bootstrap}, key=STRING, value=Json())

    class Form(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.answer(200, FORM)

        def do_POST(self) -> None:
            size = int(self.headers.get("Content-Length", 0))
            if size > MOST_BYTES:
                self.answer(413, "Too long.")
                return
            fields = {
                name: found[-1] for name, found in parse_qs(self.rfile.read(size).decode()).items()
            }
            if not fields.get("name"):
                self.answer(400, "Who are you?")
                return
            try:
                sent = producer.send(topic, fields, key=fields["name"]).result(10)
            except (SdkError, TimeoutError) as error:
                self.answer(503, f"Not saved: {error}")
            else:
                self.answer(200, f"Thank you, {fields['name']}: saved as number {sent.offset}.")

        def answer(self, status: int, text: str) -> None:
            page = text if text == FORM else html.escape(text)
            self.send_response(status)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(page.encode())

        def log_message(self, *_: object) -> None:
            """Quiet."""

    class FormServer(ThreadingHTTPServer):
        def server_close(self) -> None:
            super().server_close()
            producer.close()

    return FormServer(("127.0.0.1", int(port)), Form)


if __name__ == "__main__":
    server(*sys.argv[1:]).serve_forever()
