"""Web servers for tests: each answers every GET as the test says."""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Answer = Callable[[str], tuple[int, bytes]]
"""Takes the path of a request, and returns the status and the body."""


@contextmanager
def web_servers() -> Iterator[Callable[[Answer], str]]:
    """Yield what starts a server and returns its address; all are stopped in the end."""
    with ExitStack() as stack:

        def start(answer: Answer) -> str:
            class Handler(BaseHTTPRequestHandler):
                def do_GET(self) -> None:
                    status, said = answer(self.path)
                    self.send_response(status)
                    self.send_header("Content-Length", str(len(said)))
                    self.end_headers()
                    self.wfile.write(said)

                def log_message(self, *args: object) -> None:
                    """Say nothing."""

            server = stack.enter_context(ThreadingHTTPServer(("127.0.0.1", 0), Handler))
            stack.callback(server.shutdown)
            threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
            return f"127.0.0.1:{server.server_port}"

        yield start
