"""The certificates of a run keep others out."""

import asyncio
import os
import stat
import subprocess
import sys

import pytest
from local_dask import connected

from bqlib.running.certificates import write_certificates
from bqlib.running.site import Site

STRANGER = """
import encodings.idna, os, socket, ssl, sys
port, key, place = int(sys.argv[1]), *sys.argv[2:]
os.setgroups([]), os.setgid(65534), os.setuid(65534)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
def attempt(what, act):
    try:
        print(what, "got", act())
    except OSError as error:
        print(what, type(error).__name__, error)
def speak():
    with context.wrap_socket(socket.create_connection(("127.0.0.1", port))) as connection:
        return connection.recv(1)
attempt("scheduler", speak)
attempt("key", lambda: open(key).read())
attempt("socket", lambda: socket.socket(socket.AF_UNIX).connect(place))
"""


@pytest.mark.skipif(os.getuid() != 0, reason="becoming another user needs root")
def test_another_user_without_the_certificate_is_refused(tmp_path):
    tmp_path.parent.chmod(0o711)
    tmp_path.chmod(0o755)
    private = tmp_path / "private"
    write_certificates(private)
    assert stat.S_IMODE(private.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in private.iterdir()} == {0o600}

    async def act(client):
        address = client.scheduler.address
        assert address.startswith("tls://127.0.0.1:")
        port = address.rpartition(":")[2]
        command = [sys.executable, "-c", STRANGER, port, private / "key.pem", private / "socket"]
        process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
        output, _ = await process.communicate()
        scheduler, key, socket = output.decode().splitlines()
        assert scheduler.startswith("scheduler SSLError") and "certificate required" in scheduler
        assert key.startswith("key PermissionError")
        assert socket.startswith("socket PermissionError")

    connected(Site(workers=1), tmp_path, act)
