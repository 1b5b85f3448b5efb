/** Attributes of a span: only ids, names and numbers, no addresses or content, since they leave this host. */
export type Attributes = Readonly<Record<string, string | number | boolean>>;

export interface SpanOptions {
  readonly kind: 'server' | 'producer' | 'consumer' | 'client';
  /** The parent span as a `traceparent` of W3C Trace Context; by default the current span. */
  readonly parent?: string | undefined;
  /** Other spans that caused this one. */
  readonly links?: readonly string[];
  /** How long ago the span started; 0 by default. */
  readonly startedAgoMs?: number;
  readonly attributes: Attributes;
}

export interface OpenSpan {
  readonly setAttributes: (attributes: Attributes) => void;
  /** Marks the span as failed although the work did not throw. */
  readonly fail: () => void;
}

/** Traces messages across processes. Only set if tracing is enabled. */
export interface Tracer {
  /** Runs `work` in a new span, which is the current span during that time. Records and rethrows errors. */
  readonly span: <T>(name: string, options: SpanOptions, work: (span: OpenSpan) => Promise<T>) => Promise<T>;
  /** Returns the `traceparent` of the current span, to be passed to another process; undefined without a span. */
  readonly current: () => string | undefined;
}
