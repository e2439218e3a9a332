import { describe, expect, it } from "vitest";
import { readPayload, SHOWN_PAYLOAD_BYTES } from "./payload.ts";

const bytesOf = (text: string) => new TextEncoder().encode(text);

describe("payloads", () => {
  it("of JSON get line breaks, unless a number would be rounded", () => {
    expect(readPayload(bytesOf('{"id":1}')).text).toBe('{\n  "id": 1\n}');
    expect(readPayload(bytesOf('{"id":12345678901234567890}')).text).toBe('{"id":12345678901234567890}');
    expect(readPayload(bytesOf('{"amount":1.10}')).text).toBe('{"amount":1.10}');
  });

  it("of deeply nested JSON stay as short as they are", () => {
    const nested = `${"[".repeat(4000)}${"]".repeat(4000)}`;
    expect(readPayload(bytesOf(nested)).text).toBe(nested);
    expect(readPayload(bytesOf('["]\\"[",[]]')).text).toBe('[\n  "]\\"[",\n  []\n]');
  });

  it("that are markup stay text", () => {
    const markup = "<img src=x onerror=alert(1)>";
    expect(readPayload(bytesOf(markup))).toEqual({ form: "text", text: markup, hiddenBytes: 0 });
  });

  it("that are not text are shown as hexadecimal bytes", () => {
    const { form, text } = readPayload(Uint8Array.from({ length: 17 }, (_, index) => index + 240));
    expect(form).toBe("hex");
    expect(text).toBe("000000  f0 f1 f2 f3 f4 f5 f6 f7 f8 f9 fa fb fc fd fe ff\n000010  00");
    expect(readPayload(bytesOf("a\u0000b")).form).toBe("hex");
  });

  it("are cut at 64 KiB, between characters", () => {
    const { form, text, hiddenBytes } = readPayload(bytesOf(`${"a".repeat(SHOWN_PAYLOAD_BYTES - 1)}é!`));
    expect(form).toBe("text");
    expect(text).toBe("a".repeat(SHOWN_PAYLOAD_BYTES - 1));
    expect(hiddenBytes).toBe(2);
  });
});
