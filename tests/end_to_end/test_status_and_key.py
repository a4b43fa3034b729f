# SPDX-License-Identifier: Apache-2.0
"""`artel status` and `artel key`: what a person asks a running server on the same machine."""
from pathlib import Path

from serving import Server


def test_status_and_key_ask_the_running_server(run_artel, artel, models, tmp_path):
    model = models / "SmolLM2-135M-Instruct.Q4_1.gguf"
    with Server(artel, model, "--local-workers", "2") as server:
        server.wait_until_serving()
        state = Path(server.directory.name, "state")
        done = run_artel("status", "--state-dir", state)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("serving\n")
        assert "local-2" in done.stdout
        keys = {run_artel("key", "--state-dir", state).stdout for _ in range(2)}
        assert len(keys) == 2 and all(key.startswith("artel1.") for key in keys)
        second = run_artel("serve", "-m", model, "--listen", "127.0.0.1:0", "--state-dir", state)
        assert second.returncode == 1
        assert "another artel serve runs" in second.stderr
        assert server.get("/health")[0] == 200
    nobody = run_artel("status", "--state-dir", tmp_path / "none")
    assert nobody.returncode == 1
    assert "no artel serve runs" in nobody.stderr
