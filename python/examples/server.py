"""A server that answers by a model: python server.py [PORT]; without a port it asks itself, from many threads, and ends.

    curl -d '[0.1, 0.9]' localhost:8000

A thread reads each request. Calls of Weber wait for each other, so that one thread computes all requests that wait as one batch.
"""
import http.client
import http.server
import json
import queue
import sys
import threading
from concurrent.futures import Future, ThreadPoolExecutor

import weber as wb


class Batches:
    """Answers of the model, for as many inputs at once as there are, up to `most`."""

    def __init__(self, model, most=64):
        self.model, self.most, self.waiting, self.sizes = model, most, queue.SimpleQueue(), []
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()

    def __call__(self, x):
        answer = Future()
        self.waiting.put((x, answer))
        return answer.result()

    def end(self):
        self.waiting.put(None)
        self.thread.join()

    def work(self):
        for first in iter(self.waiting.get, None):
            asked = [first]
            while len(asked) < self.most and not self.waiting.empty():
                asked.append(self.waiting.get())
            self.sizes.append(len(asked))
            try:
                answers = self.model(wb.array([x for x, _ in asked])).tolist()
            except Exception as error:  # a bad request of one must not end the thread
                answers = [error] * len(asked)
            for (_, answer), y in zip(asked, answers):
                answer.set_exception(y) if isinstance(y, Exception) else answer.set_result(y)


def server(answer, inputs, port=0):
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            try:
                x = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if not isinstance(x, list) or len(x) != inputs or not all(isinstance(v, (int, float)) for v in x):
                    raise ValueError("a list of %d numbers is expected" % inputs)
                status, text = 200, json.dumps(answer(x))
            except ValueError as error:
                status, text = 400, json.dumps(str(error))
            body = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format, *args):
            pass

    return http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)


def ask(port, text):
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("POST", "/", text)
    answer = connection.getresponse()
    found = answer.status, json.loads(answer.read())
    connection.close()
    return found


def main():
    wb.seed(1)
    model = wb.Chain(wb.Dense(2, 64, wb.relu), wb.Dense(64, 3), wb.softmax)  # or wb.load_model("model.bson")
    batches = Batches(model)
    if len(sys.argv) > 1:
        server(batches, 2, int(sys.argv[1])).serve_forever()
    with server(batches, 2) as s:
        threading.Thread(target=s.serve_forever).start()
        inputs = [[i / 400, 1 - i / 400] for i in range(400)]
        with ThreadPoolExecutor(8) as threads:
            answers = list(threads.map(lambda x: ask(s.server_address[1], json.dumps(x)), inputs))
        refused = ask(s.server_address[1], '["a", 1]')
        s.shutdown()
    batches.end()
    right = model(wb.array(inputs))
    print("%d answers in %d batches; a bad request: %d %s" % (len(answers), len(batches.sizes), *refused))
    return all(status == 200 for status, _ in answers) and wb.allclose(wb.array([y for _, y in answers]), right, rtol=1e-5) and refused[0] == 400


if __name__ == "__main__":
    main()
