/** What a span says of itself. It leaves this machine: ids, names and numbers; no addresses, no content. */
export type Attributes = Readonly<Record<string, string | number | boolean>>;

export interface SpanOptions {
  /** What it is to others: it answers them, leaves them work, takes up work that was left, or calls them. */
  readonly kind: 'server' | 'producer' | 'consumer' | 'client';
  /** The span that it goes on from, as `traceparent` of W3C Trace Context; without it, the one that is under way. */
  readonly parent?: string | undefined;
  /** Other spans that led to it. */
  readonly links?: readonly string[];
  /** Milliseconds since it began; 0 by default. */
  readonly ago?: number;
  readonly attributes: Attributes;
}

/** A span that is under way. */
export interface OpenSpan {
  readonly note: (attributes: Attributes) => void;
  /** Says that what it stands for has failed, although nothing was thrown. */
  readonly fail: () => void;
}

/** Follows messages through the processes. There is one only where traces are wanted. */
export interface Tracer {
  /** Does some work as a span: the one that is under way for all that the work does. What it throws is noted and thrown. */
  readonly span: <T>(name: string, options: SpanOptions, work: (span: OpenSpan) => Promise<T>) => Promise<T>;
  /** The span that is under way, for another process to go on from; undefined where none is. */
  readonly current: () => string | undefined;
}
