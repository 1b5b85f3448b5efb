import { ANSWER_BYTES, TELLING_TRIES, waitAfter } from '../../domain/webhooks.ts';
import type { Line } from '../../public-fetch/post.ts';
import type { Health, OpenEndpoint } from '../../store/webhooks/idle.ts';
import type { DueDelivery, Try } from '../../store/webhooks/attempts.ts';
import { posted } from '../../telemetry/topics.ts';
import { type Attempt, attempt, isGone, succeeded } from '../../webhooks/attempt.ts';
import type { WebhookDeps } from './contract.ts';

/** Tries under way at a time to one endpoint. */
export const IN_FLIGHT = 32;
/** After so many failures in a row, tries begin apart, so that an endpoint that is dead costs little. */
const PATIENCE = 20;
/** Milliseconds between them. */
const APART = 50;

/** The tries of one endpoint that are under way, and those that begin as soon as there is room. */
export interface Flight {
  /** Begins these too, and all from now on at the endpoint as it is now. */
  readonly serve: (endpoint: OpenEndpoint, deliveries: readonly DueDelivery[]) => void;
  /** Begins none of those that have not begun. */
  readonly drop: () => void;
  /** How many have not begun. */
  readonly waiting: () => number;
  /** Whether nothing is under way, nor ended without having been told of. */
  readonly isOver: () => boolean;
  /** All that have been served and not been told of. */
  readonly ids: () => string[];
  /** Tries that have ended since it was asked last. Throws what none of them should have. */
  readonly landed: () => Try[];
  /** Resolves when a try has ended, and at that instant of the monotonic clock at the latest. */
  readonly news: (until: number) => Promise<void>;
  readonly health: () => Health;
  /** Whether the endpoint wants nothing any more. */
  readonly isGone: () => boolean;
  /** Closes its connections, and begins nothing any more. */
  readonly close: () => void;
}

/** @param goesOn whether another try may begin */
export function makeFlight({ openLine, seal, log }: WebhookDeps, goesOn: () => boolean): Flight {
  const flying = new Set<string>();
  const queue: DueDelivery[] = [];
  let ended: Try[] = [];
  let broken: Error | undefined;
  let target: { readonly endpoint: OpenEndpoint; readonly secrets: readonly Buffer[] } | undefined;
  /** By URL, which its owner may change meanwhile. */
  const lines = new Map<string, Line>();
  let ring: (() => void) | undefined;
  let health: Health = { succeeded: false, failed: false, telling: false };
  let gone = false;
  let failures = 0;
  let nextAt = 0;
  const mayBegin = (): boolean => !gone && goesOn();

  const lineTo = (url: string): Line => {
    const line = lines.get(url) ?? openLine(url, IN_FLIGHT, ANSWER_BYTES, target?.endpoint.org_id);
    lines.set(url, line);
    return line;
  };

  const fill = (): void => {
    while (target && queue.length > 0 && flying.size < IN_FLIGHT && mayBegin() && performance.now() >= nextAt) {
      const delivery = queue.shift() as DueDelivery;
      if (failures >= PATIENCE) nextAt = performance.now() + APART;
      flying.add(delivery.id);
      begin(target, delivery)
        .catch((error: unknown) => {
          broken = error as Error;
        })
        .finally(() => {
          flying.delete(delivery.id);
          fill();
          ring?.();
        });
    }
  };

  const begin = async ({ endpoint, secrets }: NonNullable<typeof target>, delivery: DueDelivery): Promise<void> => {
    const began = performance.now();
    const result = await attempt(lineTo(endpoint.url), delivery.event_id, delivery.payload ?? '', secrets);
    const took = succeeded(result);
    failures = took ? 0 : failures + 1;
    gone ||= isGone(result);
    health = {
      succeeded: health.succeeded || took,
      failed: health.failed || !took,
      telling: health.telling || (!took && delivery.tries + 1 >= TELLING_TRIES),
    };
    ended.push(toTry(delivery, result, performance.now() - began));
    posted.publish({ outcome: outcomeOf(result), seconds: result.durationMs / 1_000 });
    log.info(
      {
        delivery: delivery.id,
        event: delivery.event_id,
        org: endpoint.org_id,
        attempt: delivery.tries + 1,
        status: result.statusCode,
        ms: result.durationMs,
        reason: result.error ?? undefined,
      },
      took ? 'webhook delivered' : 'webhook not taken',
    );
  };

  return {
    serve(endpoint, deliveries) {
      const sealed = [endpoint.secret, ...(endpoint.old_secret ? [endpoint.old_secret] : [])];
      target = { endpoint, secrets: sealed.map((secret) => seal.open(secret, endpoint.id)) };
      queue.push(...deliveries);
      fill();
    },
    drop: () => {
      queue.length = 0;
    },
    waiting: () => queue.length,
    isOver: () => flying.size === 0 && ended.length === 0,
    ids: () => [...flying, ...queue.map(({ id }) => id), ...ended.map(({ id }) => id)],
    landed() {
      if (broken) throw broken;
      const all = ended;
      ended = [];
      return all;
    },
    async news(until) {
      fill();
      const hasRoom = queue.length > 0 && flying.size < IN_FLIGHT && mayBegin();
      const within = Math.min(until, hasRoom ? nextAt : Infinity) - performance.now();
      if (ended.length > 0 || broken || within <= 0) return;
      await new Promise<void>((resolve) => {
        const timer = within === Infinity ? undefined : setTimeout(resolve, within);
        ring = () => {
          clearTimeout(timer);
          resolve();
        };
      });
      ring = undefined;
    },
    health: () => health,
    isGone: () => gone,
    close() {
      queue.length = 0;
      for (const line of lines.values()) line.close();
    },
  };
}

function outcomeOf(result: Attempt): 'delivered' | 'refused' | 'unanswered' | 'gone' {
  if (succeeded(result)) return 'delivered';
  if (result.statusCode === null) return 'unanswered';
  return isGone(result) ? 'gone' : 'refused';
}

function toTry({ id, tries }: DueDelivery, result: Attempt, ago: number): Try {
  const { statusCode, durationMs, response, error, retryAfter } = result;
  const common = { id, tries, ago, statusCode, durationMs, response, error };
  if (succeeded(result)) return { ...common, status: 'succeeded', wait: null };
  const wait = isGone(result) ? undefined : waitAfter(tries + 1, retryAfter, Math.random());
  return wait === undefined ? { ...common, status: 'failed', wait: null } : { ...common, status: 'pending', wait };
}
