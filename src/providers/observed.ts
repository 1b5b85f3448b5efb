import { performance } from 'node:perf_hooks';
import { providerCalled, tally } from '../telemetry/topics.ts';
import type { Attributes, OpenSpan, Tracer } from '../telemetry/tracer.ts';
import type { ChatProvider } from './chat-provider.ts';
import type { EmailProvider } from './email-provider.ts';

type Operation = 'send' | 'find' | 'report';

/** Outcomes that the operator should investigate. */
const FAILED_OUTCOMES = ['busy', 'account', 'unknown'];

/** Wraps a provider with metrics and, if tracing is enabled, a span for each call. */
export function observeEmailProvider(provider: EmailProvider, tracer?: Tracer): EmailProvider {
  const { name, reports } = provider;
  const find = provider.find?.bind(provider);
  const observe = makeObserver(name, tracer);
  return {
    ...provider,
    send(emails, callName, onOutcome, handOver) {
      const one = emails.length === 1 && emails[0] ? { 'sendwright.message.id': emails[0].id } : {};
      const about = { 'sendwright.call': callName, 'sendwright.messages': emails.length, ...one };
      const send = () => provider.send(emails, callName, onOutcome, handOver);
      return observe('send', about, send, (outcomes) => outcomes.map(({ kind }) => kind));
    },
    ...(find && {
      find: (callName: string) => observe('find', { 'sendwright.call': callName }, () => find(callName)),
    }),
    ...(reports && {
      reports: (emailId: string, messageId: string) =>
        observe('report', { 'sendwright.message.id': emailId }, () => reports(emailId, messageId)),
    }),
  };
}

/** Wraps a chat-app provider with the same metrics and span for each call. */
export function observeChatProvider(provider: ChatProvider, tracer?: Tracer): ChatProvider {
  const { name } = provider;
  const find = provider.find?.bind(provider);
  const report = provider.report?.bind(provider);
  const observe = makeObserver(name, tracer);
  const about = ({ id }: { readonly id: string }) => ({ 'sendwright.message.id': id });
  return {
    ...provider,
    send: (message, ...more) =>
      observe(
        'send',
        about(message),
        () => provider.send(message, ...more),
        ({ kind }) => [kind],
      ),
    ...(find && {
      find: (...[message, ...more]: Parameters<typeof find>) =>
        observe('find', about(message), () => find(message, ...more)),
    }),
    ...(report && {
      report: (...[message, providerMessageId]: Parameters<typeof report>) =>
        observe('report', about(message), () => report(message, providerMessageId)),
    }),
  };
}

function makeObserver(provider: string, tracer: Tracer | undefined) {
  return async <T>(
    operation: Operation,
    attributes: Attributes,
    work: () => Promise<T>,
    outcomesOf: (result: T) => readonly string[] = () => ['answered'],
  ): Promise<T> => {
    const began = performance.now();
    const report = (outcomes: ReadonlyMap<string, number>): void => {
      providerCalled.publish({ provider, operation, seconds: (performance.now() - began) / 1_000, outcomes });
    };
    const run = async (span?: OpenSpan): Promise<T> => {
      try {
        const result = await work();
        const outcomes = tally(outcomesOf(result));
        report(outcomes);
        for (const [outcome, count] of outcomes) span?.setAttributes({ [`sendwright.outcome.${outcome}`]: count });
        if (FAILED_OUTCOMES.some((outcome) => outcomes.has(outcome))) span?.fail();
        return result;
      } catch (error) {
        report(tally(['failed']));
        throw error;
      }
    };
    if (!tracer) return run();
    const about = { 'sendwright.provider': provider, ...attributes };
    return tracer.span(`${provider} ${operation}`, { kind: 'client', attributes: about }, run);
  };
}
