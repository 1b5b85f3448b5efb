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

/** Maximum time for exporting the last spans when the process ends. */
const SHUTDOWN_TIMEOUT_MS = 1_000;

/**
 * Only this file imports OpenTelemetry; it is loaded when tracing is enabled. OpenTelemetry's own settings (`OTEL_…`)
 * control the exporter, sampling and the service name.
 * @param name the service name unless `OTEL_SERVICE_NAME` is set
 * @param warn called when spans could not be exported; they are dropped
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
      const { parent, links = [], startedAgoMs = 0, attributes, kind } = options;
      const parentContext = parent === undefined ? context.active() : contextOf(parent);
      const started = startedAgoMs === 0 ? {} : { startTime: Date.now() - startedAgoMs };
      const spanOptions = {
        kind: KINDS[kind],
        attributes,
        links: links.flatMap((link) => trace.getSpanContext(contextOf(link)) ?? []).map((each) => ({ context: each })),
        ...started,
      };
      return tracer.startActiveSpan(spanName, spanOptions, parentContext, async (span) => {
        const fail = (): void => void span.setStatus({ code: SpanStatusCode.ERROR });
        try {
          return await work({ setAttributes: (more) => void span.setAttributes(more), fail });
        } catch (error) {
          // Only the class name, since the message may contain addresses or content.
          span.setAttribute('error.type', error instanceof Error ? error.name : typeof error);
          fail();
          throw error;
        } finally {
          span.end();
        }
      });
    },
    current() {
      const headers: { traceparent?: string } = {};
      propagation.inject(context.active(), headers);
      return headers.traceparent;
    },
    // An unavailable collector must not delay the end of the process.
    stop: () =>
      Promise.race([provider.shutdown().catch(ignore), sleep(SHUTDOWN_TIMEOUT_MS, undefined, { ref: false })]),
  };
}

const KINDS: Readonly<Record<SpanOptions['kind'], SpanKind>> = {
  server: SpanKind.SERVER,
  producer: SpanKind.PRODUCER,
  consumer: SpanKind.CONSUMER,
  client: SpanKind.CLIENT,
};

/** Returns the context of another process's span; a root context if `traceparent` is malformed. */
function contextOf(traceparent: string): Context {
  return propagation.extract(ROOT_CONTEXT, { traceparent });
}
