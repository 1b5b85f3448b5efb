import type { Member, MemberResult } from '../../src/delivery/contract.ts';
import type { EmailDeps } from '../../src/delivery/email/contract.ts';
import { deliverEmails } from '../../src/delivery/email/deliver.ts';
import { makeLargeEmails } from '../../src/delivery/email/large-emails.ts';
import { makeProviderLine } from '../../src/delivery/line.ts';
import { makeProviderPauses } from '../../src/delivery/pauses.ts';
import { makeAttemptRecorder } from '../../src/delivery/call.ts';
import { makeSendingDomains } from '../../src/delivery/email/sending-domains.ts';
import { makeTrack } from '../../src/delivery/email/tracking.ts';
import { accountLinkSeal } from '../../src/domain/email/account-link.ts';
import type { EmailProviderName } from '../../src/domain/email/email.ts';
import { copyKey, emailOfKey, type OutgoingEmail } from '../../src/domain/email/outgoing.ts';
import type { SendOutcome } from '../../src/domain/email/retry.ts';
import { dkimSeal } from '../../src/sender-domains/deps.ts';
import type { NewEmail } from '../../src/store/emails/accept.ts';
import { makeEmailContents } from '../../src/store/emails/contents.ts';
import { diskStore } from '../../src/store/files/disk.ts';
import type { EmailProvider } from '../../src/providers/email-provider.ts';
import type { Pool } from '../../src/store/postgres/pool.ts';
import { accept, emailRow, newEmail, timeline } from '../store/mail.ts';
import { captureLog } from '../support/captured-log.ts';
import { SECRET_KEY } from '../support/secret-key.ts';
import { ageAttempts, beginAttempt } from './attempts.ts';

/** The outcome of a scripted provider for one email. A function may read the database first. */
export type Act = SendOutcome | ((email: OutgoingEmail, call: string) => SendOutcome | Promise<SendOutcome>);

/** A provider with scripted outcomes, and a ledger of the emails that it took. */
export class ScriptedProvider implements EmailProvider {
  readonly name: EmailProviderName;
  callSize = 500;
  overlap = 0;
  hasTracking = true;
  /** Outcomes of the next emails; it takes those without one. */
  readonly acts: Act[] = [];
  /** Its calls in their order, with the ids of their emails. */
  readonly calls: { call: string; ids: string[] }[] = [];
  /** Every email or copy of one that it ever took, once for each time, by its `copyKey`. */
  readonly took: { id: string; call: string; messageId: string }[] = [];
  /** The emails of all calls, in their order. */
  readonly given: OutgoingEmail[] = [];
  refuses: (email: OutgoingEmail) => string | undefined = () => undefined;
  /** True if its search finds the emails that it took. */
  sees = true;
  find?: NonNullable<EmailProvider['find']>;
  /** The number of searches. */
  asked = 0;

  /** @param canBeAsked true if it has a search, like Postmark and unlike SMTP */
  constructor(name: EmailProviderName = 'postmark', canBeAsked = true) {
    this.name = name;
    if (canBeAsked) {
      this.find = async (call) => {
        this.asked++;
        const found = this.sees ? this.took.filter((each) => each.call === call || emailOfKey(each.id) === call) : [];
        return new Map(found.map(({ id, messageId }) => [id, messageId]));
      };
    }
  }

  /** The keys of what it took, in its order. */
  get tookIds(): string[] {
    return this.took.map(({ id }) => id);
  }

  /** The number of emails of each call. */
  get callSizes(): number[] {
    return this.calls.map(({ ids }) => ids.length);
  }

  refusal(email: OutgoingEmail): string | undefined {
    return this.refuses(email);
  }

  /** Enters an email into the ledger. */
  take({ id, copy = null }: { id: string; copy?: number | null }, call: string): SendOutcome {
    const messageId = `${this.name} ${this.took.length + 1}`;
    this.took.push({ id: copyKey(id, copy), call, messageId });
    return { kind: 'sent', messageId };
  }

  async send(
    emails: readonly OutgoingEmail[],
    call: string,
    onOutcome?: (position: number, outcome: SendOutcome) => void,
  ): Promise<SendOutcome[]> {
    this.calls.push({ call, ids: emails.map(({ id }) => id) });
    this.given.push(...emails);
    const acts = emails.map(() => this.acts.shift());
    return Promise.all(
      emails.map(async (email, i) => {
        const act: Act = acts[i] ?? ((taken) => this.take(taken, call));
        const outcome = typeof act === 'function' ? await act(email, call) : act;
        if (this.overlap > 0) onOutcome?.(i, outcome);
        return outcome;
      }),
    );
  }
}

export interface AttemptRow {
  n: number;
  call: string;
  provider: string;
  outcome: string | null;
  detail: string | null;
  checks: number;
  ended_at: string | null;
}

/** An empty file store. */
export const NO_STORE = diskStore('/nowhere');

const contents = makeEmailContents(SECRET_KEY);

/** The dependencies of `deliver` for one organization, with scripted providers and a captured log. */
export function harness(pool: Pool, orgId: string, providers: ScriptedProvider[], settings: Partial<EmailDeps> = {}) {
  const { log, lines } = captureLog('debug');
  const deps: EmailDeps = {
    pool,
    contents,
    accountLinks: accountLinkSeal(SECRET_KEY),
    providers,
    initialIntervalMs: 2_000,
    maxIntervalMs: 1_800_000,
    ambiguousSend: 'retry',
    ambiguousSendMaxRepeats: 1,
    confirmNotFoundAfterMs: 60_000,
    goneWorkerWaitMs: 20_000,
    largeEmails: makeLargeEmails(pool, NO_STORE, log),
    line: makeProviderLine(),
    pauses: makeProviderPauses(pool, log),
    accountRetryForMs: 72 * 3_600_000,
    recorder: makeAttemptRecorder(pool, log),
    stopping: new AbortController().signal,
    sendingDomains: makeSendingDomains(dkimSeal(SECRET_KEY), log),
    unsubscribeUrl: (_, emailId, recipient) => `https://mail.example/unsubscribe/${emailId}.${recipient}`,
    track: makeTrack('https://mail.example', SECRET_KEY, log),
    log,
    ...settings,
  };
  const attempts = async (id: string): Promise<AttemptRow[]> => {
    const { rows } = await pool.query<AttemptRow>(
      `SELECT n, call, provider, outcome, detail, checks, ended_at FROM attempts WHERE message_id = $1 ORDER BY n`,
      [id],
    );
    return rows;
  };
  const acceptMany = async (n: number, fields: (i: number) => Partial<NewEmail> = () => ({})): Promise<Member[]> => {
    const emails = Array.from({ length: n }, (_, i) => newEmail(fields(i)));
    await accept(pool, orgId, emails);
    return emails.map(({ id }) => ({ id, version: 0 }));
  };
  return {
    deps,
    lines,
    acceptMany,
    attempts,
    /** Stores one email. */
    accept: async (fields: Partial<NewEmail> = {}): Promise<Member> => {
      const [member] = await acceptMany(1, () => fields);
      return member as Member;
    },
    deliver: (...members: Member[]): Promise<MemberResult[]> => deliverEmails(deps, members),
    /** Delivers one email. */
    deliverOne: async (member: Member): Promise<MemberResult> => {
      const results = await deliverEmails(deps, [member]);
      if (results.length !== 1) throw new Error(`${results.length} results for one email`);
      return results[0] as MemberResult;
    },
    email: (id: string) => emailRow(pool, id),
    timeline: (id: string) => timeline(pool, id),
    /** The outcomes of an email's attempts. */
    outcomes: async (id: string): Promise<(string | null)[]> => (await attempts(id)).map(({ outcome }) => outcome),
    /** Ages the attempts of an email. */
    age: (id: string, seconds: number) => ageAttempts(pool, id, seconds),
    /** Leaves an email like a worker that dies during its call: claimed, with an attempt without an outcome. */
    die: async (member: Member, provider: ScriptedProvider, call: string, took: boolean): Promise<void> => {
      await pool.query(`UPDATE emails SET status = 'queued' WHERE id = $1`, [member.id]);
      await beginAttempt(pool, member.id, call, provider.name);
      provider.calls.push({ call, ids: [member.id] });
      if (took) provider.take(member, call);
    },
  };
}

/** A harness with one scripted provider: Postmark, or SMTP, which cannot be asked. */
export function harnessWithProvider(
  pool: Pool,
  orgId: string,
  settings: Partial<EmailDeps> = {},
  name: EmailProviderName = 'postmark',
) {
  const provider = new ScriptedProvider(name, name === 'postmark');
  return { provider, ...harness(pool, orgId, [provider], settings) };
}

/** The result of an email that was sent by Postmark. */
export function sent(id: string): MemberResult {
  return { id, state: 'ended', status: 'sent', provider: 'postmark' };
}
