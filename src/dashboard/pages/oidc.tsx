import { Type } from 'typebox';
import type { Oidc } from '../../accounts/oidc.ts';
import { linkToUser, signInByOidc } from '../../accounts/oidc-sign-in.ts';
import { countNetworkAttempt, refundNetworkAttempt } from '../../accounts/sign-in-limits.ts';
import { ServiceError } from '../../domain/errors.ts';
import { tooManyAttempts } from '../errors.tsx';
import { Form } from '../form-elements.tsx';
import { PlainLayout } from '../layout.tsx';
import { makeFlowCookie, OIDC_CALLBACK, OIDC_SIGN_IN, sessionDigest, type StoredFlow } from '../oidc-flow.ts';
import { type Html, type PageResponse, type PageRow, publicPage, Redirect, Reply, type Visit } from '../page.ts';
import { oidcCookie, safeNext } from '../session.ts';
import { signedIn } from './signed-in.ts';

/** The page for members who signed in by password to an organization that requires OpenID Connect. */
export const OIDC_REQUIRED = '/dashboard/sign-in/required';

const begin = publicPage(Type.Object({ next: Type.Optional(Type.String()) }), async (visit) => {
  const next = safeNext(visit.query.next);
  return orFailure(visit, { next }, async () => {
    const { url, flow } = await requireOidc(visit).begin();
    return new Redirect(url, { oidcFlow: makeFlowCookie(visit.deps.secretKey).write(flow, next, Date.now()) });
  });
});

const callback = publicPage(Type.Object({}), async (visit) => {
  const oidc = requireOidc(visit);
  const flow = makeFlowCookie(visit.deps.secretKey).read(visit.oidcFlow, Date.now());
  if (!flow) {
    return failure(
      visit,
      { next: '/dashboard' },
      401,
      'The sign-in took too long, or it was begun in another browser.',
    );
  }
  const { linkSession } = flow;
  // Otherwise an attacker could link their identity to this account (login CSRF).
  if (linkSession !== undefined && linkSession !== sessionDigest(visit.session)) {
    return failure(visit, flow, 401, 'The link was begun in another session.');
  }
  const seconds = await countNetworkAttempt(visit.pool, visit.address);
  if (seconds !== undefined) throw tooManyAttempts(seconds);
  return orFailure(visit, flow, async () => {
    const { pool, address, session } = visit;
    const identity = await oidc.finish(new URL(visit.url, visit.baseUrl).search, flow).catch(async (error: unknown) => {
      // An outage of the identity provider must not count as an attempt of the network.
      if (error instanceof ServiceError && error.code === 'unavailable') await refundNetworkAttempt(pool, address);
      throw error;
    });
    if (linkSession !== undefined && session) {
      await linkToUser(pool, identity, session);
      await refundNetworkAttempt(pool, address);
      return new Redirect(flow.next, { oidcFlow: null, flash: `${oidc.name} was linked to your account.` });
    }
    const { isNew, ...user } = await signInByOidc(pool, identity, visit);
    await refundNetworkAttempt(pool, address);
    // A new user has no organization yet, but may have an invitation to accept.
    const next = isNew && !flow.next.startsWith('/dashboard/invitations/') ? '/dashboard/my-invitations' : flow.next;
    return signedIn(visit, { ...user, oidcFlow: null }, next);
  });
});

const showRequired = publicPage(Type.Object({}), async (visit) => {
  const { session } = visit;
  if (!session?.organization?.requires_oidc || session.isOidcFresh) return new Redirect('/dashboard');
  const { organization, organizations } = session;
  return (
    <PlainLayout visit={visit} title="Another sign-in is required">
      <p>
        <strong safe>{organization.name}</strong> requires its members to sign in with{' '}
        <span safe>{visit.deps.oidc?.name ?? 'an identity provider'}</span>.{' '}
        {session.byOidc ? 'You did so more than 12 hours ago.' : 'You have signed in with your password.'}
      </p>
      <SignInLink visit={visit} next="/dashboard" isPrimary />
      <div class="row">
        {organizations
          .filter(({ requires_oidc: isRequired }) => !isRequired)
          .map(({ id, name }) => (
            <Form visit={visit} action="/dashboard/organization">
              <input type="hidden" name="organization" value={id} />
              <button>
                Open <span safe>{name}</span>
              </button>
            </Form>
          ))}
        <Form visit={visit} action="/dashboard/sign-out">
          <button>Sign out</button>
        </Form>
      </div>
    </PlainLayout>
  );
});

export const rows: readonly PageRow[] = [
  ['GET', OIDC_SIGN_IN, 'public', begin],
  ['GET', OIDC_CALLBACK, 'public', callback],
  ['GET', OIDC_REQUIRED, 'public', showRequired],
];

interface SignInLinkProps {
  readonly visit: Visit;
  readonly next: string;
  readonly isPrimary?: boolean;
}

/** A link instead of a form: the content security policy blocks a form's redirect to another site. */
export function SignInLink({ visit, next, isPrimary = false }: SignInLinkProps): Html {
  const { oidc } = visit.deps;
  if (!oidc) return <p class="notice bad">This service has no identity provider at present. Ask its operator.</p>;
  return (
    <p>
      <a class={['button', isPrimary && 'primary']} href={`${OIDC_SIGN_IN}?next=${encodeURIComponent(next)}`}>
        Sign in with <span safe>{oidc.name}</span>
      </a>
    </p>
  );
}

/** The answer to a correct password if all organizations of the user require OpenID Connect. */
export function passwordRefused(visit: Visit, next: string): Reply {
  const page = (
    <PlainLayout visit={visit} title="Your password is not accepted here">
      <p>
        Your organization requires its members to sign in with{' '}
        <span safe>{visit.deps.oidc?.name ?? 'an identity provider'}</span>.
      </p>
      <SignInLink visit={visit} next={next} isPrimary />
    </PlainLayout>
  );
  return new Reply(page, { status: 403 });
}

/** @throws ServiceError not_found */
export function requireOidc({ deps }: Visit): Oidc {
  if (!deps.oidc) throw new ServiceError('not_found', 'there is nothing at this address');
  return deps.oidc;
}

/** HTTP statuses of failed sign-ins. */
const STATUS: Readonly<Record<string, number>> = {
  unauthorized: 401,
  insufficient_scope: 403,
  conflict: 409,
  unavailable: 503,
};

/** A sign-in, or the link of an account. */
type Purpose = Pick<StoredFlow, 'next' | 'linkSession'>;

async function orFailure(visit: Visit, purpose: Purpose, run: () => Promise<PageResponse>): Promise<PageResponse> {
  try {
    return await run();
  } catch (error) {
    const status = error instanceof ServiceError ? STATUS[error.code] : undefined;
    if (status === undefined) throw error;
    const { message } = error as ServiceError;
    return failure(visit, purpose, status, `${message.charAt(0).toUpperCase()}${message.slice(1)}.`);
  }
}

function failure(visit: Visit, { next, linkSession }: Purpose, status: number, why: string): Reply {
  const isLink = linkSession !== undefined;
  const page = (
    <PlainLayout visit={visit} title={isLink ? 'Your account was not linked' : 'You are not signed in'}>
      <p safe>{why}</p>
      {!isLink && <SignInLink visit={visit} next={next} />}
      <p>{isLink ? <a href={next}>Back to your account</a> : <a href="/dashboard/sign-in">Back to sign-in</a>}</p>
      <p class="hint">
        Request <code safe>{visit.requestId}</code>
      </p>
    </PlainLayout>
  );
  return new Reply(page, { status, headers: { 'set-cookie': oidcCookie(visit.deps.publicUrl, null) } });
}
