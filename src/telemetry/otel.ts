import { setTimeout as sleep } from 'node:timers/promises';
import {
  type Context,
  context,
  diag,
  DiagLogLevel,
  propagation,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { defaultResource, detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources';
import { BatchSpanProcessor, NodeTracerProvider } from '@opentelemetry/sdk-trace-node';
import type { SpanOptions, Tracer } from './tracer.ts';

/** Milliseconds for the last spans of a process. */
const LAST_WORDS = 1_000;

/**
 * The one file that knows OpenTelemetry; loaded only where traces are wanted. Where to, how much of them and under which
 * name is for OpenTelemetry's own settings (`OTEL_…`) to say.
 * @param name what the process is called, unless `OTEL_SERVICE_NAME` says otherwise
 * @param warn told of spans that could not be sent; they are dropped
 */
export function startTracer(
  name: string,
  warn: (message: string) => void,
): Tracer & { readonly stop: () => Promise<void> } {
  const ignore = (): void => undefined;
  const logger = { error: warn, warn, info: ignore, debug: ignore, verbose: ignore };
  diag.setLogger(logger, { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });
  const provider = new NodeTracerProvider({
    resource: defaultResource()
      .merge(resourceFromAttributes({ 'service.name': name }))
      .merge(detectResources({ detectors: [envDetector] })),
    spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())],
  });
  provider.register();
  const tracer = trace.getTracer('sendwright');

  return {
    span: (spanName, options, work) => {
      const { parent, links = [], ago = 0, attributes, kind } = options;
      const above = parent === undefined ? context.active() : contextOf(parent);
      const started = ago === 0 ? {} : { startTime: Date.now() - ago };
      const spanOptions = {
        kind: KINDS[kind],
        attributes,
        links: links.flatMap((link) => trace.getSpanContext(contextOf(link)) ?? []).map((each) => ({ context: each })),
        ...started,
      };
      return tracer.startActiveSpan(spanName, spanOptions, above, async (span) => {
        const fail = (): void => void span.setStatus({ code: SpanStatusCode.ERROR });
        try {
          return await work({ note: (more) => void span.setAttributes(more), fail });
        } catch (error) {
          // Its message may quote what was to be stored or sent.
          span.setAttribute('error.type', error instanceof Error ? error.name : typeof error);
          fail();
          throw error;
        } finally {
          span.end();
        }
      });
    },
    current() {
      const carrier: { traceparent?: string } = {};
      propagation.inject(context.active(), carrier);
      return carrier.traceparent;
    },
    // Who ends a process does not wait for a collector that is gone.
    stop: () => Promise.race([provider.shutdown().catch(ignore), sleep(LAST_WORDS, undefined, { ref: false })]),
  };
}

const KINDS: Readonly<Record<SpanOptions['kind'], SpanKind>> = {
  server: SpanKind.SERVER,
  producer: SpanKind.PRODUCER,
  consumer: SpanKind.CONSUMER,
  client: SpanKind.CLIENT,
};

/** The context of a span of another process; a root when what is given is none. */
function contextOf(traceparent: string): Context {
  return propagation.extract(ROOT_CONTEXT, { traceparent });
}
