import { insertAudit } from '../store/accounts/audit.ts';
import { type Answer, type Context, Redirect } from './page.ts';

type Detail = Readonly<Record<string, unknown>>;

/** A change that a page makes. */
export interface Change<T> {
  /** What it is done to and what is done, in the words of the API's paths: `webhooks.create`, `members.remove`. */
  readonly action: string;
  /** Makes the change, by a function of intake. */
  readonly run: () => Promise<T>;
  /** The id of what was changed. */
  readonly target?: string | null | ((made: T) => string | null);
  /** What else the audit log shall tell; never a secret. */
  readonly detail?: Detail | ((made: T) => Detail);
  /** The path that is gone to, or the page that is shown at once: for what is shown only once, such as a key. */
  readonly then: string | ((made: T) => Answer | Promise<Answer>);
  /** What that path's page tells. */
  readonly said?: string;
}

/** Makes a change for a member, notes it in the audit log, and leads on. */
export async function act<T>(context: Context, change: Change<T>): Promise<Answer> {
  const made = await change.run();
  const { target = null, detail = {}, then, said } = change;
  await insertAudit(context.pool, {
    org_id: context.organization.id,
    actor_kind: 'user',
    actor_id: context.user.id,
    action: change.action,
    target: typeof target === 'function' ? target(made) : target,
    detail: typeof detail === 'function' ? detail(made) : detail,
  });
  if (typeof then === 'string') return new Redirect(then, said === undefined ? {} : { flash: said });
  return then(made);
}
