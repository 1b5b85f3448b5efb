/** A page of the documentation. */
interface PageEntry {
  /** The file name in `docs/` without `.md`, and the path below `/docs/`. */
  readonly name: string;
  /** One line for the index of the documentation and for llms.txt. */
  readonly description: string;
}

interface PageGroup {
  readonly title: string;
  readonly pages: readonly PageEntry[];
}

const page = (name: string, description: string): PageEntry => ({ name, description });

/**
 * Every page of `docs/` in reading order. A test compares it with the folder. Titles are the first headings of the files.
 * `api` is the reference, which is rendered from the API description.
 */
export const NAVIGATION: readonly PageGroup[] = [
  {
    title: 'Get started',
    pages: [
      page('quickstart', 'Start the service, send an email, follow it and receive its events, with curl'),
      page('languages', 'Programs that send and read email and verify webhooks, in Node.js, Python, PHP, Ruby and Go'),
      page('authentication', 'API keys: creating them, what they permit, and what 401 and 403 mean'),
      page('client', 'The TypeScript client: installation, sending, lists, errors, webhooks'),
      page('moving', 'What to change when you come from Resend, Postmark or useSend, and how to import suppressions'),
    ],
  },
  {
    title: 'Sending',
    pages: [
      page('sending', 'Sending email: scheduling, batches, idempotency, attachments, tags, domains, limits, quota'),
      page('statuses', 'Statuses, bounces, suppression list, filters, statistics, content and erasure of email'),
      page('whatsapp-sms', 'WhatsApp messages, templates and numbers, and SMS'),
      page('tracking', 'Open and click tracking by sender domain: settings, opens by machines, links'),
    ],
  },
  {
    title: 'Receiving events',
    pages: [page('webhooks', 'Webhook endpoints: payloads, event types, signatures, retries and replay')],
  },
  {
    title: 'Operating',
    pages: [
      page('operating', 'Deploying with and without Docker, TLS and proxies, secrets, suspending, what went wrong'),
      page('maintenance', 'Upgrades, backup and restore, Postgres, growth and retention'),
      page('scaling', 'Sizing, fleets, connections, what an email costs, and how to grow beyond one machine'),
      page('providers', 'Connecting Postmark, an SMTP server, Twilio and Meta'),
      page('metrics', 'Metrics, alerts, traces and logs'),
      page('accounts', 'Roles, sign-in, sessions and emails of dashboard accounts'),
      page('command-line', 'The command line: organizations, users, domains, numbers, quotas'),
      page('security', 'What is defended against, and what is left to the operator'),
      page('guarantees', 'What is promised when processes, networks and providers fail'),
    ],
  },
  {
    title: 'Reference',
    pages: [
      page('api', 'Every operation of the API with its fields, responses and examples in six languages'),
      page('errors', 'Every error code with its status and meaning'),
      page('settings', 'Every setting from the environment or .env, with its default'),
    ],
  },
  {
    title: 'Troubleshooting',
    pages: [
      page('troubleshooting', 'Where to begin, and the page of each symptom'),
      page('email-stays-queued', 'An email stays queued: refused or unreachable providers, no worker, a large batch'),
      page('sent-not-delivered', 'An email is sent but not delivered: SMTP, missing webhooks, greylisting'),
      page('domain-stays-pending', 'A domain stays pending: doubled names, cut values, caches of DNS'),
      page('403-when-sending', '403 when sending: unknown or unverified domains, and keys that may not'),
      page('webhook-signature-fails', 'A webhook signature fails: parsed bodies, wrong secrets, clocks'),
      page('webhook-does-not-arrive', 'A webhook does not arrive: subscriptions, disabled endpoints, timeouts'),
      page('emails-land-in-spam', 'Emails land in spam: DNS records, volume, complaints, links'),
      page('email-arrives-twice', 'An email arrives twice: repeated requests, lost responses, forwarding'),
      page('email-suppressed', 'An email is suppressed: its entry in the suppression list'),
      page('bounce-reasons', 'Every bounce reason: its meaning, whether it suppresses, and what to do'),
    ],
  },
];
