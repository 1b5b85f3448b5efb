/** Attributes of a span. They leave this host: ids, names and numbers only, no addresses and no content. */
export type Attributes = Readonly<Record<string, string | number | boolean>>;

export interface SpanOptions {
  readonly kind: 'server' | 'producer' | 'consumer' | 'client';
  /** The parent span as a `traceparent` of W3C Trace Context; by default the current span. */
  readonly parent?: string | undefined;
  /** Other spans that caused this one. */
  readonly links?: readonly string[];
  /** The span started so long ago; 0 by default. */
  readonly startedAgoMs?: number;
  readonly attributes: Attributes;
}

export interface OpenSpan {
  readonly setAttributes: (attributes: Attributes) => void;
  /** Marks the span as failed although nothing was thrown. */
  readonly fail: () => void;
}

/** Traces messages across processes. Exists only when tracing is enabled. */
export interface Tracer {
  /** Runs `work` in a new span, which is the current one meanwhile. An error is recorded and rethrown. */
  readonly span: <T>(name: string, options: SpanOptions, work: (span: OpenSpan) => Promise<T>) => Promise<T>;
  /** The `traceparent` of the current span, to be passed to another process; undefined without one. */
  readonly current: () => string | undefined;
}
