/** `@onceward/mcp-proxy`: what `onceward probe --mcp` shares with the proxy, a bounded connection to a server. */

export { Client } from "@modelcontextprotocol/sdk/client/index.js";
export { ErrorCode, McpError, ResultSchema } from "@modelcontextprotocol/sdk/types.js";
export { connectUpstream, type UpstreamAddress } from "./upstream.ts";
