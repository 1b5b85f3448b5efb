import { type Role, ROLES } from '../store/accounts/users.ts';
import { Section, Table } from './elements.tsx';
import type { Html } from './page.ts';

interface Right {
  readonly name: string;
  /** The lowest role that has this right. */
  readonly role: Role;
  /** The changes that it permits, as in the route table. */
  readonly routes: readonly string[];
}

/** The rights of roles. test/dashboard/access.test.ts compares them with the route table. */
export const RIGHTS: readonly Right[] = [
  { name: 'Read messages, domains, keys without their secrets, members and the audit log', role: 'viewer', routes: [] },
  {
    name: 'Reschedule, cancel and resend email',
    role: 'member',
    routes: ['/emails/:id/reschedule', '/emails/:id/cancel', '/emails/:id/again', '/batches/:id/cancel'],
  },
  {
    name: 'Reschedule and cancel WhatsApp messages and SMS',
    role: 'member',
    routes: ['/chatapp', '/sms'].flatMap((path) => [`${path}/:id/reschedule`, `${path}/:id/cancel`]),
  },
  {
    name: 'Add and remove suppressions',
    role: 'member',
    routes: ['/suppressions/add', '/suppressions/:id/remove'],
  },
  {
    name: 'Test webhook endpoints and replay deliveries',
    role: 'member',
    routes: ['/webhooks/:id/test', '/webhooks/:id/replay', '/webhooks/:id/deliveries/:deliveryId/replay'],
  },
  { name: 'Check the DNS records of a domain', role: 'member', routes: ['/domains/:id/verify'] },
  {
    name: 'Send the test email of the first steps, and dismiss them',
    role: 'member',
    routes: ['/checklist/test-email', '/checklist/dismiss'],
  },
  {
    name: 'Create, rename and revoke API keys',
    role: 'owner',
    routes: ['/keys/new', '/keys/:id/edit', '/keys/:id/revoke'],
  },
  {
    name: 'Add and delete domains, and change their tracking',
    role: 'owner',
    routes: ['/domains/new', '/domains/:id/tracking', '/domains/:id/delete'],
  },
  { name: 'Connect and remove numbers', role: 'owner', routes: ['/numbers/new', '/numbers/:id/remove'] },
  {
    name: 'Add, change and delete webhook endpoints',
    role: 'owner',
    routes: [
      ...['/webhooks/new', '/webhooks/:id/edit', '/webhooks/:id/enable', '/webhooks/:id/disable'],
      ...['/webhooks/:id/secret', '/webhooks/:id/rotate-secret', '/webhooks/:id/delete'],
    ],
  },
  { name: 'Rename the organization', role: 'owner', routes: ['/settings'] },
  { name: 'Set what sign-in requires of members', role: 'owner', routes: ['/members/security'] },
  {
    name: 'Invite and remove members, and change their roles',
    role: 'owner',
    routes: ['/members', '/members/:id/role', '/members/:id/remove', '/members/invitations/:id/withdraw'],
  },
];

/** The names of roles in a form, from the fewest rights to the most. */
export const ROLE_NAMES: readonly (readonly [Role, string])[] = [
  ['viewer', 'Viewer: reads everything but secrets'],
  ['member', 'Member: resends, cancels, manages suppressions'],
  ['owner', 'Owner: also keys, domains, webhooks and members'],
];

/** Returns true if a role has all rights of another one. */
export function includesRole(role: Role, other: Role): boolean {
  return ROLES.indexOf(role) >= ROLES.indexOf(other);
}

export function RoleTable(): Html {
  return (
    <Section title="Roles">
      <Table caption="Roles" columns={['Right', 'Viewer', 'Member', 'Owner']}>
        {RIGHTS.map((right) => (
          <tr>
            <th scope="row" safe>
              {right.name}
            </th>
            {ROLES.map((role) => (
              <td>{includesRole(role, right.role) ? 'Yes' : 'No'}</td>
            ))}
          </tr>
        ))}
      </Table>
    </Section>
  );
}
