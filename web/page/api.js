// Calls to the daemon that served this page.

/** A refusal (problem+json), or status 0 when no answer came. The message is for people. */
export class Problem extends Error {
  constructor(status, code, words, retryAfter = 0) {
    super(words);
    this.status = status;
    this.code = code;
    this.retryAfter = retryAfter;
  }
}

export class API {
  #session;
  #skew = 0;

  constructor(session) {
    this.#session = session;
  }

  /** The daemon's clock: ages are right also where two machines disagree about the time. */
  now() {
    return Date.now() + this.#skew;
  }

  /** Makes a call and gives the response; throws a Problem, or an AbortError when signal fired. */
  async call(path, { method = "GET", body, headers = {}, signal } = {}) {
    const token = this.#session.token;
    const all = { Authorization: `Bearer ${token}`, ...headers };
    if (body !== undefined) all["Content-Type"] = "application/json";
    let response;
    try {
      response = await fetch(path, {
        method,
        headers: all,
        body: body === undefined ? undefined : JSON.stringify(body),
        signal,
        cache: "no-store",
        credentials: "omit",
      });
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new Problem(0, "unreachable", "Afoot cannot be reached. Is the daemon running?");
    }
    this.#learnClock(response.headers.get("Date"));
    if (response.ok) return response;
    const problem = await describe(response);
    if (response.status !== 401 || this.#session.token === null) throw problem;
    // A wait may outlive its token, which was renewed meanwhile: then the new one is good.
    if (this.#session.token !== token) return this.call(path, { method, body, headers, signal });
    this.#session.end("Your sign-in is no longer valid.");
    throw problem;
  }

  /** Makes a call and gives the JSON of the answer. */
  async json(path, options) {
    const response = await this.call(path, options);
    try {
      return await response.json();
    } catch (error) {
      if (options?.signal?.aborted) throw error;
      throw new Problem(0, "cut", "The answer was cut off on its way.");
    }
  }

  // The header has whole seconds only, so small differences mean nothing.
  #learnClock(date) {
    const seen = Date.parse(date ?? "");
    if (Number.isNaN(seen)) return;
    const skew = seen + 500 - Date.now();
    this.#skew = Math.abs(skew) < 2_000 ? 0 : skew;
  }
}

async function describe(response) {
  const retryAfter = 1000 * Number(response.headers.get("Retry-After") ?? 0) || 0;
  const problem = await response.json().catch(() => ({}));
  const words = problem.detail || problem.title || `The answer was ${response.status}.`;
  return new Problem(response.status, problem.code ?? "", words, retryAfter);
}
