import { groupBy } from '../../lib/group.ts';
import { readSendSizes, type SendSize, SMALL_BODY_BYTES } from '../../store/emails/attempts.ts';
import type { AgainResult, Member, MemberResult } from '../contract.ts';
import { type GroupChannel, notAttempted, takeTurns } from '../group.ts';
import { MAX_CALL_BYTES } from './assign.ts';
import { makeCallOverlap } from './call-overlap.ts';
import { emailChannel } from './channel.ts';
import { publishCompletedBatches } from './completed-batches.ts';
import type { EmailDeps } from './contract.ts';
import { deliverEmails } from './deliver.ts';

/** The activity of a group may take an hour. */
const CLAIM_DEADLINE_MS = 30 * 60_000;

/** Groups of emails: each provider call takes as many as it may. */
export function emailGroups(deps: EmailDeps): GroupChannel {
  return {
    endings: emailChannel(deps),
    table: 'emails',
    claimDeadlineMs: CLAIM_DEADLINE_MS,
    deliver: (members, stopping) => deliverInSlices({ ...deps, stopping }, members),
    onEnded: (ids) => publishCompletedBatches(deps, ids),
  };
}

/**
 * Delivers the emails of a group in slices of at most one provider call, counted in copies and bytes. The next slice starts when at
 * most `overlap` emails of the earlier slices are unfinished. While a provider has refused emails of an organization and accepted
 * none, the organization's further emails are not attempted.
 */
async function deliverInSlices(deps: EmailDeps, members: readonly Member[]): Promise<MemberResult[]> {
  const results: MemberResult[] = [];
  const calls = makeCallOverlap(deps.providers[0]?.overlap ?? 0);
  const sizes = await readSendSizes(
    deps.pool,
    members.map(({ id }) => id),
  );
  const orgOf = ({ id }: { readonly id: string }) => sizes.get(id)?.org_id;
  for (const slice of splitIntoSlices(deps, members, sizes)) {
    await calls.waitForCapacity();
    const refusals = refusalsByOrganization(results, orgOf);
    const open = slice.filter((member) => !refusals.has(orgOf(member)));
    for (const member of slice) {
      const refused = refusals.get(orgOf(member));
      if (refused) results.push(notAttempted(member.id, refused));
    }
    if (open.length === 0) continue;
    calls.run(open.length, async (onResults) => {
      results.push(...(await deliverEmails(deps, open, onResults)));
    });
  }
  await calls.end();
  return results;
}

/** Returns the last refusal of each organization of which no email was accepted yet. Other organizations may not be affected. */
function refusalsByOrganization(
  results: readonly MemberResult[],
  orgOf: (result: MemberResult) => string | undefined,
): Map<string | undefined, AgainResult> {
  const refusals = new Map<string | undefined, AgainResult>();
  for (const [org, own] of groupBy(results, orgOf)) {
    const refused = own.every(({ state }) => state === 'again') && own.findLast(isRefusal);
    if (refused) refusals.set(org, refused);
  }
  return refusals;
}

/** Returns true if the provider refused the member, and not because it was part of a group. */
function isRefusal(result: MemberResult): result is AgainResult {
  return result.state === 'again' && result.alone !== true && result.postponed !== true;
}

function splitIntoSlices(
  deps: EmailDeps,
  members: readonly Member[],
  sizes: ReadonlyMap<string, SendSize>,
): Member[][] {
  const maxCopies = deps.providers[0]?.callSize ?? 1;
  // A large email may take a minute; members of other organizations do not wait for it.
  const isLarge = ({ id }: Member) => (sizes.get(id)?.bytes ?? 0) > SMALL_BODY_BYTES;
  const orgOf = ({ id }: Member) => sizes.get(id)?.org_id;
  const smallFirst = [
    ...takeTurns(
      members.filter((member) => !isLarge(member)),
      orgOf,
    ),
    ...takeTurns(members.filter(isLarge), orgOf),
  ];
  const slices: Member[][] = [];
  let capacity = { copies: 0, bytes: 0 };
  for (const member of smallFirst) {
    const { copies = 1, bytes = 0 } = sizes.get(member.id) ?? {};
    const slice = slices.at(-1);
    if (slice && copies <= capacity.copies && bytes <= capacity.bytes) slice.push(member);
    else {
      slices.push([member]);
      capacity = { copies: maxCopies, bytes: MAX_CALL_BYTES };
    }
    capacity = { copies: capacity.copies - copies, bytes: capacity.bytes - bytes };
  }
  return slices;
}
