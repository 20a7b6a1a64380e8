// A task's output as plain text for a page. Pure.

// Escape sequences a terminal would act on: CSI, OSC (ended by BEL or ST), other two- and three-byte ones.
const escapes = /\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]+[0-~]|[0-Z\\^-~])/g;
const longest = 256;

/**
 * Takes output piece by piece and gives what to show: escape sequences are left
 * out, a carriage return begins a new line. What is cut at the end of a piece
 * waits for the next.
 */
export class OutputCleaner {
  #held = "";

  push(piece) {
    let text = this.#held + piece;
    this.#held = "";
    const cut = unfinished(text);
    if (cut >= 0) {
      this.#held = text.slice(cut);
      text = text.slice(0, cut);
    }
    return text.replace(escapes, "").replace(/\r+\n?/g, "\n");
  }

  /** What was still held, at the end of the output. */
  rest() {
    const text = this.#held;
    this.#held = "";
    return text.replace(escapes, "").replace(/\r+\n?/g, "\n");
  }
}

// Where an escape sequence or line end begins that the next piece may go on with; -1 when there is none.
function unfinished(text) {
  const escape = text.lastIndexOf("\x1b");
  if (escape >= 0 && text.length - escape <= longest) {
    escapes.lastIndex = 0;
    const tail = text.slice(escape);
    const opensOSC = escape > 0 && tail === "\x1b" ? text.lastIndexOf("\x1b]", escape - 1) : -1;
    if (opensOSC >= 0 && !text.slice(opensOSC, escape).includes("\x07") && escape - opensOSC <= longest) return opensOSC;
    const match = tail.match(/^\x1b(?:\[[0-?]*[ -/]*|\][^\x07\x1b]*|[ -/]*)$/);
    if (match) return escape;
  }
  return text.endsWith("\r") ? text.search(/\r+$/) : -1;
}
