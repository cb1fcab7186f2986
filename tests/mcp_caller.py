"""An agent's MCP client over Django's own test client: both eras of the protocol, and nothing sent that was not asked for."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from django.test import Client

MCP = "/bridge/mcp"
NEW, OLD = "2026-07-28", "2025-11-25"
ERAS = (NEW, OLD)


@dataclass
class Caller:
    token: str
    era: str = NEW

    def send(self, method: str, **params: Any) -> Any:
        """The raw answer to one JSON-RPC request."""
        headers = {"MCP-Protocol-Version": self.era}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        if self.era == NEW:
            params["_meta"] = {
                "io.modelcontextprotocol/protocolVersion": NEW,
                "io.modelcontextprotocol/clientCapabilities": {},
            }
            headers["Mcp-Method"] = method
            if isinstance(params.get("name"), str):
                headers["Mcp-Name"] = params["name"]
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return Client(raise_request_exception=False).post(MCP, json.dumps(body), "application/json", headers=headers)

    def tools(self) -> list[str]:
        return [tool["name"] for tool in self.send("tools/list").json()["result"]["tools"]]

    def call(self, tool: str, **arguments: Any) -> tuple[str, bool]:
        """What a tool said, and whether it went well."""
        answer = self.send("tools/call", name=tool, arguments=arguments)
        assert answer.status_code == 200, answer.content
        result = answer.json()["result"]
        assert "structuredContent" not in result
        (block,) = result["content"]
        return block["text"], not result["isError"]


def token_of(client: Client, subject: str = "alice", session: str = "s-1", **more: Any) -> str:
    wish = {"subject_id": subject, "session_id": session, **more}
    answer = client.post("/bridge/v1/sessions", wish, "application/json")
    assert answer.status_code == 201, answer.content
    token: str = answer.json()["token"]
    return token
