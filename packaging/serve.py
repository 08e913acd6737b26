"""Runs a command beside a server of a release: serve.py FOLDER VERSION COMMAND…

Only this machine can reach the server. PROWESS_BASE_URL has its address.
"""

import http.server
import os
import subprocess
import sys
import threading
from pathlib import Path


class Release(http.server.SimpleHTTPRequestHandler):
    def translate_path(self, path):
        folder, _, name = path.rpartition("/")
        known = folder in ("/latest/download", f"/download/v{VERSION}")
        return str(FOLDER / (name if known and name else "no such file"))

    def log_message(self, *_):
        pass


FOLDER, VERSION = Path(sys.argv[1]).resolve(), sys.argv[2]
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Release)
threading.Thread(target=server.serve_forever, daemon=True).start()
environment = {**os.environ, "PROWESS_BASE_URL": f"http://127.0.0.1:{server.server_port}"}
sys.exit(subprocess.run(sys.argv[3:], env=environment).returncode)
