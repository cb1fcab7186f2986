"""The bench's own arithmetic: a figure nobody checks is worse than none."""

from __future__ import annotations

import math
import os
import socket
import threading
import time
import xml.etree.ElementTree as ET

import pytest

from benchmarks import meter, report, web


def took(cpu: float, *waits: float) -> meter.Took:
    return meter.Took(operations=10, elapsed=2.0, cpu=cpu, waits=waits)


def test_a_result_is_the_median_of_its_rounds() -> None:
    result = meter.Result("ours", [took(0.001, 0.1), took(0.009, 0.9), took(0.002, 0.2)])
    assert result.cpu_us == pytest.approx(200)
    assert result.wait(0.5) == pytest.approx(200)
    assert result.rate == 5


def test_processor_time_is_that_of_this_process_and_its_threads() -> None:
    before, spent = meter.seconds([os.getpid()]), time.process_time()

    def work() -> None:
        until = time.thread_time() + 0.05
        while time.thread_time() < until:
            pass

    thread = threading.Thread(target=work)
    thread.start()
    work()
    counted = meter.seconds([os.getpid()]) - before
    thread.join()
    assert 0.05 <= counted <= time.process_time() - spent + 0.05
    assert meter.memory([os.getpid()]) > 2**20


@pytest.mark.parametrize(("found", "met"), [(2.0, True), (2.3, False), (math.nan, False)])
def test_a_target_says_whether_it_was_met(found: float, met: bool) -> None:
    target = report.Target("a read", "raw read", found, 2.2, "why not")
    assert target.met is met
    told = " ".join(map(str, target.row()))
    assert ("missed" in told) is (not met and not math.isnan(found))
    assert ("not measured" in told) is math.isnan(found)


def test_the_plot_is_a_picture_with_a_point_for_each_figure() -> None:
    drawn = report.plot({"ours": [(1_000, 100.0), (2_000_000, 110.0)], "raw": [(1_000, 60.0)]}, across="facts", up="µs")
    picture = ET.fromstring(drawn)
    assert len(picture.findall("{http://www.w3.org/2000/svg}circle")) == 3


@pytest.mark.parametrize(
    ("pieces", "status"),
    [
        ([b"HTTP/1.1 200 OK\r\nContent-Le", b"ngth: 2\r\n\r\n{}"], 200),
        ([b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n", b"0\r\n\r\n"], 200),
        ([b"HTTP/1.1 304 Not Modified\r\n\r\n"], 304),
        ([b""], 0),
    ],
)
def test_an_answer_counts_when_all_of_it_is_there(pieces: list[bytes], status: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        line = web.Line(server.getsockname()[1])
        there, _ = server.accept()
        for piece in pieces[:-1]:
            there.sendall(piece)
            assert line.read() is None
        if pieces[-1]:
            there.sendall(pieces[-1])
        else:
            there.close()
        assert line.read() == status
        line.socket.close()
        there.close()
