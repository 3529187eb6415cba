"""A server with OpenAI's chat completions, which says whether answers state what they shall."""
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Judge:
    """`say(question)`: status and content of the answer."""

    def __init__(self, say, token=None):
        self.asked = []
        judge = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                judge.asked.append((self.path, body))
                allowed = token is None or self.headers.get("Authorization") == f"Bearer {token}"
                status, content = say(body["messages"][0]["content"]) if allowed else (401, "who are you?")
                text = json.dumps({"choices": [{"message": {"role": "assistant", "content": content}}]} if status == 200 else {"error": content}).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True)
        self.url = f"http://127.0.0.1:{self.http.server_port}/v1"

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()

    def questions(self):
        return [body["messages"][0]["content"] for _, body in self.asked]
