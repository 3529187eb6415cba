"""Servers that stand in for vLLM, SGLang and llama.cpp's; the last is also run itself (tests/cli/test_push_llama_server.py). They check what the real
ones check, and answer with their status codes and words. What was read of them, by repository and commit:

* vllm-project/vllm 00153c8b: vllm/entrypoints/openai/models/serving.py (names, a name that is loaded, 400 and 404, what an engine's error becomes: 500);
  055e47c2: vllm/frontend/entrypoints/serve/lora/api_router.py (routes that are there with VLLM_ALLOW_RUNTIME_LORA_UPDATING alone);
  09cb327f: vllm/entrypoints/serve/cache/api_router.py (/reset_prefix_cache with VLLM_SERVER_DEV_MODE alone);
  0030b9ff: vllm/lora/worker_manager.py (the largest rank); 030ea52e: vllm/entrypoints/openai/completion/serving.py (echo, log-probabilities)
* sgl-project/sglang 0025436e: python/sglang/srt/entrypoints/http_server.py (routes, /flush_cache with 400 while requests run);
  00096b5f: python/sglang/srt/managers/tokenizer_communicator_mixin.py (--enable-lora; success and error_message);
  004c82e0: python/sglang/srt/entrypoints/openai/protocol.py (lora_path of a completion; max_tokens above 0)
* ggml-org/llama.cpp 00dc8057: tools/server/README.md (/props, /lora-adapters, /health, the field `lora` of a request), and
  tools/server/server-common.cpp: parse_lora_request, "Only no echo is supported"
"""
import json
import pathlib
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

OK, BAD_REQUEST, UNAUTHORIZED, NOT_FOUND, NOT_ALLOWED, SERVER_ERROR = 200, 400, 401, 404, 405, 500


class Refused(Exception):
    def __init__(self, status, body):
        super().__init__(body)
        self.status, self.body = status, body


def openai_error(status, message, kind="BadRequestError"):
    return Refused(status, {"error": {"message": message, "type": kind, "code": status}})


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], ConnectionError):  # whoever asked had waited long enough
            super().handle_error(request, client_address)


class StandIn:
    """`answer(adapters, prompt, tokens)`: the text of a completion; adapters: paths with their scales."""

    token = None

    def __init__(self, model, answer, score=None):
        self.model, self.answer, self.score = str(model), answer, score
        self.adapters = {}  # name -> path
        self.asked = []  # (method, path, body) of each request
        self.faults = {}  # path -> a function of the body; the bytes that it gives are the whole answer, None: as without it
        self.is_dead = False  # whoever asks is hung up on
        stand_in = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                stand_in.reply(self, "GET", None)

            def do_POST(self):
                text = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                stand_in.reply(self, "POST", json.loads(text) if text else None)

        self.http = Server(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True)
        self.thread.start()
        self.url = f"http://127.0.0.1:{self.http.server_port}"

    def end(self):
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()

    def orders(self):
        """What changed something, or was meant to: POSTs that are no questions."""
        return [(path, body) for method, path, body in self.asked if method == "POST" and path != "/v1/completions"]

    def reply(self, handler, method, body):
        path = handler.path
        self.asked.append((method, path, body))
        try:
            if self.token is not None and handler.headers.get("Authorization") != f"Bearer {self.token}":
                raise Refused(UNAUTHORIZED, {"error": f"Unauthorized: {handler.headers.get('Authorization')}"})
            fault = self.faults[path](body) if path in self.faults and method == "POST" else None
            if self.is_dead or fault is not None:
                handler.wfile.write(b"" if self.is_dead else fault)
                handler.close_connection = True
                return
            routes = self.routes()
            if path not in {of for _, of in routes}:
                raise Refused(NOT_FOUND, {"detail": "Not Found"})
            if (method, path) not in routes:
                raise Refused(NOT_ALLOWED, {"detail": "Method Not Allowed"})
            status, answer = OK, routes[method, path](body)
        except Refused as refused:
            status, answer = refused.status, refused.body
        text = answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()
        handler.send_response(status)
        handler.send_header("Content-Type", "text/plain" if isinstance(answer, str) else "application/json")
        handler.send_header("Content-Length", str(len(text)))
        handler.end_headers()
        handler.wfile.write(text)

    def models(self, _):
        own = {"id": self.model, "object": "model", "owned_by": self.owner, "root": self.model, "parent": None}
        loaded = [{"id": name, "object": "model", "owned_by": self.owner, "root": path, "parent": self.model} for name, path in self.adapters.items()]
        return {"object": "list", "data": [own, *loaded]}

    def completion(self, body, adapters):
        prompt = body["prompt"]
        if body.get("echo"):
            if not isinstance(prompt, list) or self.score is None:
                raise openai_error(BAD_REQUEST, "no log-probabilities here")
            own, best = self.score(adapters, prompt)
            logprobs = {
                "tokens": [f"<{token}>" for token in prompt] + ["."],
                "token_logprobs": [None, *own, -0.5],
                "top_logprobs": [None, *({"own": mine, "best": top} for mine, top in zip(own, best)), {"x": -0.5}],
            }
            choice = {"index": 0, "text": "...", "logprobs": logprobs}
        else:
            choice = {"index": 0, "text": self.answer(adapters, prompt, body["max_tokens"]), "logprobs": None}
        usage = {"prompt_tokens": len(prompt), "completion_tokens": 1} if isinstance(prompt, list) else {}
        return {"object": "text_completion", "model": body["model"], "choices": [choice], "usage": usage}


def rank_of(path):
    return json.loads((pathlib.Path(path) / "adapter_config.json").read_text())["r"]


class Vllm(StandIn):
    owner = "vllm"
    updates_adapters, dev_mode, largest_rank = True, False, 16

    def routes(self):
        routes = {
            ("GET", "/version"): lambda _: {"version": "0.11.2"},
            ("GET", "/v1/models"): self.models,
            ("POST", "/v1/completions"): self.completions,
        }
        if self.updates_adapters:
            routes |= {("POST", "/v1/load_lora_adapter"): self.load, ("POST", "/v1/unload_lora_adapter"): self.unload}
        if self.dev_mode:
            routes["POST", "/reset_prefix_cache"] = lambda _: ""
        return routes

    def load(self, body):
        name, path = body.get("lora_name"), body.get("lora_path")
        if not name or not path:
            raise openai_error(BAD_REQUEST, "Both 'lora_name' and 'lora_path' must be provided.", "InvalidUserInput")
        if name in self.adapters:
            raise openai_error(BAD_REQUEST, f"The lora adapter '{name}' has already been loaded. If you want to load the adapter in place, set 'load_inplace' to True.", "InvalidUserInput")  # fmt: skip
        if not (pathlib.Path(path) / "adapter_config.json").exists():
            raise openai_error(NOT_FOUND, f"Loading lora {name} failed: No adapter found for {path}", "NotFoundError")
        if rank_of(path) > self.largest_rank:
            raise openai_error(SERVER_ERROR, f"LoRA rank {rank_of(path)} is greater than max_lora_rank {self.largest_rank}.", "InternalServerError")
        self.adapters[name] = path
        return f"Success: LoRA adapter '{name}' added successfully."

    def unload(self, body):
        if body["lora_name"] not in self.adapters:
            raise openai_error(NOT_FOUND, f"The lora adapter '{body['lora_name']}' cannot be found.", "NotFoundError")
        del self.adapters[body["lora_name"]]
        return f"Success: LoRA adapter '{body['lora_name']}' removed successfully."

    def completions(self, body):
        if body["model"] in self.adapters:  # before the base model's name
            return self.completion(body, {self.adapters[body["model"]]: 1.0})
        if body["model"] != self.model:
            raise openai_error(NOT_FOUND, f"The model `{body['model']}` does not exist.", "NotFoundError")
        if body.get("echo") and isinstance(body["prompt"], list) and not body.get("return_token_ids"):
            raise openai_error(SERVER_ERROR, "", "InternalServerError")  # there is no text of ids to put before
        return self.completion(body, {})


class Sglang(StandIn):
    owner = "sglang"
    enable_lora, largest_rank, modules, is_busy = True, 64, ["all"], False

    def routes(self):
        return {
            ("GET", "/get_model_info"): lambda _: {"model_path": self.model, "tokenizer_path": self.model, "is_generation": True},
            ("GET", "/get_server_info"): self.server_info,
            ("GET", "/v1/models"): self.models,
            ("POST", "/v1/completions"): self.completions,
            ("POST", "/load_lora_adapter"): self.load,
            ("POST", "/unload_lora_adapter"): self.unload,
            ("POST", "/flush_cache"): self.flush,
        }

    def server_info(self, _):
        return {"model_path": self.model, "enable_lora": self.enable_lora, "max_lora_rank": self.largest_rank, "lora_target_modules": self.modules,
                "quantization": None, "version": "0.5.6", "internal_states": [{"load": 0}]}  # fmt: skip

    def outcome(self, problem=None):
        body = {"success": problem is None, "error_message": problem, "loaded_adapters": dict(self.adapters)}
        if problem:
            raise Refused(BAD_REQUEST, body)
        return body

    def load(self, body):
        if not self.enable_lora:
            return self.outcome("LoRA is not enabled. Please set `--enable-lora` to enable LoRA.")
        if rank_of(body["lora_path"]) > self.largest_rank:
            return self.outcome(f"LoRA adapter {body['lora_name']} with rank {rank_of(body['lora_path'])} is incompatible with the current LoRA memory pool configuration.")  # fmt: skip
        self.adapters[body["lora_name"]] = body["lora_path"]
        return self.outcome()

    def unload(self, body):
        if self.adapters.pop(body["lora_name"], None) is None:
            return self.outcome(f"LoRA adapter {body['lora_name']} is not loaded.")
        return self.outcome()

    def flush(self, _):
        text = "Cache flushed.\nPlease check backend logs for more details. (When there are running or waiting requests, the operation will not be performed.)\n"
        if self.is_busy:
            raise Refused(BAD_REQUEST, text)
        return text

    def completions(self, body):
        if body["max_tokens"] <= 0:
            raise openai_error(BAD_REQUEST, "max_tokens must be positive")
        name = body.get("lora_path")
        if name is not None and name not in self.adapters:
            raise openai_error(BAD_REQUEST, f"The following requested LoRA adapters are not loaded: {name}")
        return self.completion(body, {self.adapters[name]: 1.0} if name else {})


class Llama(StandIn):
    owner = "llamacpp"

    def __init__(self, model, answer, started_with=()):
        super().__init__(model, answer)
        self.loras = [{"id": i, "path": str(path), "scale": scale} for i, (path, scale) in enumerate(started_with)]

    def routes(self):
        return {
            ("GET", "/health"): lambda _: {"status": "ok"},
            ("GET", "/props"): lambda _: {"default_generation_settings": {}, "total_slots": 1, "model_path": self.model, "build_info": "b9999-00dc8057"},
            ("GET", "/v1/models"): self.models,
            ("POST", "/v1/completions"): self.completions,
            ("GET", "/lora-adapters"): lambda _: self.loras,
            ("POST", "/lora-adapters"): self.set_scales,
        }

    def scales(self, entries):
        scales = {lora["id"]: 0.0 for lora in self.loras}
        for entry in entries:
            if entry.get("id") not in scales:
                raise openai_error(BAD_REQUEST, "invalid adapter id", "invalid_request_error")
            scales[entry["id"]] = entry.get("scale", 0.0)
        return scales

    def set_scales(self, body):
        if not isinstance(body, list):
            raise openai_error(BAD_REQUEST, "Request body must be an array", "invalid_request_error")
        for number, scale in self.scales(body).items():
            self.loras[number]["scale"] = scale
        return {"success": True}

    def completions(self, body):
        if body.get("echo"):
            raise openai_error(SERVER_ERROR, "Only no echo is supported", "server_error")
        scales = self.scales(body.get("lora", self.loras))
        return self.completion(body, {lora["path"]: scales[lora["id"]] for lora in self.loras if scales[lora["id"]] != 0})
