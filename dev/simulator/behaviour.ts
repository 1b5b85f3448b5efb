/** The affected calls: the next n, or all if `true`. */
type Calls = number | boolean;

/**
 * The behavior of the simulated providers, set by `PUT /simulator/behaviour`. A call is one `POST /email`, one `POST
 * /email/batch`, one message by SMTP or one chat-app message. Lookups are not calls.
 */
export interface Behaviour {
  /** Milliseconds between accepting or refusing a call and the response. */
  readonly latency_ms: number;
  /** Calls that are refused with `status`, with nothing stored. SMTP always responds with 451. */
  readonly fail_next: Calls;
  /** The HTTP status of these responses and of `fail_after_accept`, from 400 to 599. */
  readonly status: number;
  /** The provider's error code in these responses; null for the usual code of the status. SMTP has none. */
  readonly error_code: number | null;
  /** Seconds in the Retry-After header of these responses; null for no header. */
  readonly retry_after: number | null;
  /** Calls whose messages are stored without any response. */
  readonly hang: Calls;
  /** Calls whose messages are stored, but whose response is `status` and `error_code`. HTTP only. */
  readonly fail_after_accept: Calls;
  /** Calls whose messages are stored before the connection is reset. */
  readonly reset_after_accept: Calls;
  /** Calls whose connection is reset, with nothing stored. */
  readonly reset_before_accept: Calls;
  /** Calls whose messages are stored and whose response is 200 with HTML. HTTP only. */
  readonly garbage: Calls;
  /** Postmark's search and Twilio's list omit messages younger than this many milliseconds. */
  readonly search_lag_ms: number;
  /** How many extra times each report about new messages is posted. */
  readonly repeat_reports: number;
  /** True if the reports about new messages are posted in random order. */
  readonly shuffle_reports: boolean;
}

const DEFAULT_BEHAVIOUR: Behaviour = {
  latency_ms: 0,
  fail_next: 0,
  status: 500,
  error_code: null,
  retry_after: null,
  hang: 0,
  fail_after_accept: 0,
  reset_after_accept: 0,
  reset_before_accept: 0,
  garbage: 0,
  search_lag_ms: 0,
  repeat_reports: 0,
  shuffle_reports: false,
};

/** Faults of calls, in order of precedence. */
const FAULTS = [
  'reset_before_accept',
  'fail_next',
  'hang',
  'fail_after_accept',
  'reset_after_accept',
  'garbage',
] as const;
type Fault = (typeof FAULTS)[number];

interface Rule {
  readonly must: string;
  readonly holds: (value: unknown) => boolean;
}

function integer(min: number, max: number): Rule {
  return {
    must: `must be a whole number from ${min} to ${max}`,
    holds: (value) => Number.isInteger(value) && (value as number) >= min && (value as number) <= max,
  };
}

function or(rule: Rule, other: string, holds: Rule['holds']): Rule {
  return { must: `${rule.must}, or ${other}`, holds: (value) => holds(value) || rule.holds(value) };
}

const millisecondsRule = integer(0, 600_000);
const callsRule = or(integer(0, 1_000_000), 'true for every call', (value) => typeof value === 'boolean');
const orNull = (rule: Rule) => or(rule, 'null', (value) => value === null);

const RULES: Readonly<Record<keyof Behaviour, Rule>> = {
  latency_ms: millisecondsRule,
  fail_next: callsRule,
  status: integer(400, 599),
  error_code: orNull(integer(0, 999_999)),
  retry_after: orNull(integer(0, 86_400)),
  hang: callsRule,
  fail_after_accept: callsRule,
  reset_after_accept: callsRule,
  reset_before_accept: callsRule,
  garbage: callsRule,
  search_lag_ms: millisecondsRule,
  repeat_reports: integer(0, 1_000),
  shuffle_reports: { must: 'must be true or false', holds: (value) => typeof value === 'boolean' },
};

/** The current behavior. Numbers of calls count down. */
export class Switches {
  #now = DEFAULT_BEHAVIOUR;

  get now(): Behaviour {
    return this.#now;
  }

  /** Sets all switches; missing ones are reset. @returns the problem of the input; undefined if it is valid */
  set(input: unknown): string | undefined {
    if (typeof input !== 'object' || input === null || Array.isArray(input)) return 'The body must be a JSON object.';
    for (const [name, value] of Object.entries(input)) {
      if (!Object.hasOwn(RULES, name)) return `${name}: is not a switch; there are ${Object.keys(RULES).join(', ')}`;
      const rule = RULES[name as keyof Behaviour];
      if (!rule.holds(value)) return `${name}: ${rule.must}`;
    }
    this.#now = { ...DEFAULT_BEHAVIOUR, ...(input as Partial<Behaviour>) };
    return undefined;
  }

  reset(): void {
    this.#now = DEFAULT_BEHAVIOUR;
  }

  /** Returns the fault of the current call; undefined if it is answered. */
  take(): Fault | undefined {
    const fault = FAULTS.find((name) => this.#now[name] !== false && this.#now[name] !== 0);
    const left = fault && this.#now[fault];
    if (fault && typeof left === 'number') this.#now = { ...this.#now, [fault]: left - 1 };
    return fault;
  }
}
