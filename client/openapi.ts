/** Types of the API, made from /openapi.json by `npm run client:types`. Not written by hand. */

export interface paths {
  '/v1/emails': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * List emails
     * @description Emails that have all that the filters ask for, newest first. Follow `next_cursor` until it is null: a page may hold fewer emails than `limit`, even none, where filters that fit many emails each fit hardly any together. Emails that are accepted meanwhile neither repeat nor hide one.
     */
    get: operations['listEmails'];
    put?: never;
    /**
     * Send an email
     * @description Accepts one email for delivery, immediately or at `scheduled_at`.
     */
    post: operations['sendEmail'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/emails/tags': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * List tags
     * @description Every tag with the number of stored emails that have it, in any status.
     */
    get: operations['listTags'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/emails/batch': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * List batches
     * @description Batches with how far each has come, newest first. Follow `next_cursor` until it is null.
     */
    get: operations['listBatches'];
    put?: never;
    /**
     * Send a batch
     * @description Accepts up to 10,000 emails for delivery, all or none. Attachments are not accepted. The limit on the request body holds for the whole batch: 43 MB are about 4.5 kB per email in a batch of 10,000.
     */
    post: operations['sendBatch'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/emails/batch/{id}': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Get a batch
     * @description How far a batch has come.
     */
    get: operations['getBatch'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/emails/batch/{id}/cancel': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Cancel a batch
     * @description Cancels every email of a batch that is still scheduled.
     */
    post: operations['cancelBatch'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/emails/{id}': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Get an email
     * @description One email with its status and timeline.
     */
    get: operations['getEmail'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    /**
     * Reschedule an email
     * @description Gives an email that is still scheduled another time, earlier or later, as often as you like.
     */
    patch: operations['rescheduleEmail'];
    trace?: never;
  };
  '/v1/emails/{id}/cancel': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Cancel an email
     * @description Calls an email back that is still scheduled. It stays retrievable and listable.
     */
    post: operations['cancelEmail'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/emails/{id}/content': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Get the content of an email
     * @description Subject, bodies and custom headers as sent, until they are erased.
     */
    get: operations['getEmailContent'];
    put?: never;
    post?: never;
    /**
     * Erase the content of an email
     * @description Erases bodies, custom headers and files of an email that is no longer to be sent. The record stays. Repeated, it changes nothing.
     */
    delete: operations['eraseEmailContent'];
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/emails/{id}/attachments': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * List the attachments of an email
     * @description Files are kept until 30 days after the send. Ask again for a fresh link.
     */
    get: operations['listAttachments'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/emails/{id}/attachments/{attachmentId}': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Get an attachment of an email
     * @description One attachment with a fresh link.
     */
    get: operations['getAttachment'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/emails/{id}/attachments/{attachmentId}/download': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Download an attachment
     * @description Where `download_url` leads. Needs no API key.
     */
    get: operations['downloadAttachment'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/chatapp': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * List chat-app messages
     * @description Messages that have all that the filters ask for, newest first. Follow `next_cursor` until it is null.
     */
    get: operations['listChatMessages'];
    put?: never;
    /**
     * Send a chat-app message
     * @description Accepts one WhatsApp message for delivery: a text, a template, an image or a document. The number it comes from must be connected. A number at Twilio carries less than one at Meta: a message that exceeds it ends as `failed`, with an `error` that names the limit.
     */
    post: operations['sendChatMessage'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/chatapp/numbers': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * List numbers
     * @description Connected numbers, newest first. Follow `next_cursor` until it is null.
     */
    get: operations['listChatNumbers'];
    put?: never;
    /**
     * Connect a number
     * @description Chat-app messages can come from it from now on. The provider is asked whether the number belongs to the account of its token; numbers on the operator's account are connected by the operator. A number is connected to one organization. Tokens are kept encrypted and never shown.
     */
    post: operations['connectChatNumber'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/chatapp/numbers/{id}': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Get a number
     * @description One connected number with its templates.
     */
    get: operations['getChatNumber'];
    put?: never;
    post?: never;
    /**
     * Disconnect a number
     * @description Messages are no longer sent from this number. Accepted messages that were not sent yet fail.
     */
    delete: operations['disconnectChatNumber'];
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/chatapp/{id}': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Get a chat-app message
     * @description One message as it was given, with its status and timeline.
     */
    get: operations['getChatMessage'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/domains': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * List domains
     * @description Registered domains, newest first, without their records. Follow `next_cursor` until it is null.
     */
    get: operations['listDomains'];
    put?: never;
    /**
     * Register a domain
     * @description Email can be sent from a domain once it is verified: add its `records` to its DNS. They are checked immediately, then at growing intervals for 72 hours, and daily once the domain is verified.
     */
    post: operations['createDomain'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/domains/{id}': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Get a domain
     * @description One domain with its records, and what was found of them when DNS was last asked.
     */
    get: operations['getDomain'];
    put?: never;
    post?: never;
    /**
     * Delete a domain
     * @description Email can no longer be sent from this domain. Accepted email from it fails when it is due.
     */
    delete: operations['deleteDomain'];
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/domains/{id}/verify': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Verify a domain
     * @description Asks DNS now and answers with what is there; asked again within seconds, with what was found then. A domain that has failed begins anew.
     */
    post: operations['verifyDomain'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/suppressions': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * List suppressions
     * @description Addresses that nothing, or no marketing email, is sent to, newest first. Follow `next_cursor`.
     */
    get: operations['listSuppressions'];
    put?: never;
    /**
     * Suppress addresses
     * @description Email is no longer sent to these addresses. Returns 201 if at least one of them is new on the list, 200 if all of them were on it; existing entries are not changed.
     */
    post: operations['createSuppressions'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/suppressions/{idOrEmail}': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Get a suppression
     * @description By its id, or by its address: of two of one address, the one for all mail.
     */
    get: operations['getSuppression'];
    put?: never;
    post?: never;
    /**
     * Remove a suppression
     * @description By its id, or all of an address. The address is also taken off the list of the provider, where it has one, within seconds.
     */
    delete: operations['deleteSuppressions'];
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/erasures': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Erase a recipient
     * @description Replaces an address by a placeholder in emails, timelines, webhook events and the audit log, and erases the content of emails that went to it alone. The address gets no more email: a keyed hash of it remains. A request works for a few seconds; while `has_more` is true, repeat the request with `next_cursor`. Erasing again changes nothing.
     */
    post: operations['eraseRecipient'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/webhooks': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * List endpoints
     * @description Endpoints, newest first. Follow `next_cursor` until it is null.
     */
    get: operations['listWebhooks'];
    put?: never;
    /**
     * Create an endpoint
     * @description Events that happen from now on are posted there, signed as Standard Webhooks 1.0.0 says. Its secret is in this answer alone.
     */
    post: operations['createWebhook'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/webhooks/{id}': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Get an endpoint
     * @description One endpoint with its state; its secret is not shown again.
     */
    get: operations['getWebhook'];
    put?: never;
    post?: never;
    /**
     * Delete an endpoint
     * @description Events are no longer sent to this endpoint, and its deliveries can no longer be read.
     */
    delete: operations['deleteWebhook'];
    options?: never;
    head?: never;
    /**
     * Change an endpoint
     * @description Pending deliveries go to the new URL. Events that happen while the endpoint is disabled are not sent later.
     */
    patch: operations['updateWebhook'];
    trace?: never;
  };
  '/v1/webhooks/{id}/rotate-secret': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Rotate the secret of an endpoint
     * @description The new secret is in this answer alone. For 24 hours the old one signs too.
     */
    post: operations['rotateWebhookSecret'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/webhooks/{id}/test': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Test an endpoint
     * @description Sends an event of the type `webhook.test`, even if the endpoint is not subscribed to it.
     */
    post: operations['testWebhook'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/webhooks/{id}/replay': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Replay the deliveries of a period
     * @description Sends all of them again, or those of one status, oldest first.
     */
    post: operations['replayDeliveries'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/webhooks/{id}/deliveries': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * List the deliveries of an endpoint
     * @description One for each event that it wanted, newest first, for 30 days. Follow `next_cursor` until it is null.
     */
    get: operations['listDeliveries'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/webhooks/{id}/deliveries/{deliveryId}': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Get a delivery
     * @description One delivery with its payload and the result of each attempt.
     */
    get: operations['getDelivery'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/webhooks/{id}/deliveries/{deliveryId}/replay': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Replay a delivery
     * @description Sends the event again immediately, with the same id and body and a full set of attempts.
     */
    post: operations['replayDelivery'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/keys': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * List API keys
     * @description Keys that were not revoked, expired ones too, newest first. Follow `next_cursor` until it is null. A key for certain domains sees keys for those domains only.
     */
    get: operations['listApiKeys'];
    put?: never;
    /**
     * Make an API key
     * @description The response contains the key, which is shown this once. A key makes no key that may do more than itself, from other domains or addresses, or for longer: `domain_ids`, `allowed_ips` and `expires_at` that limit the key that asks have to be given, and to lie within its own.
     */
    post: operations['createApiKey'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/keys/{id}': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Get an API key
     * @description What a key may do, and when it was last used.
     */
    get: operations['getApiKey'];
    put?: never;
    post?: never;
    /**
     * Revoke an API key
     * @description It is refused within a second, for good. A key may revoke itself.
     */
    delete: operations['deleteApiKey'];
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/healthz': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Is the process alive?
     * @description Looks at nothing but the process itself.
     */
    get: operations['getHealth'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/readyz': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Can the process serve?
     * @description Looks for Postgres and for the schema this version needs.
     */
    get: operations['getReadiness'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
}
export interface webhooks {
  email: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /** Email event */
    post: operations['onEmailEvent'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  batch: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /** All emails of a batch were sent or have ended */
    post: operations['onBatchEvent'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  chatapp: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /** Chat-app message event */
    post: operations['onChatMessageEvent'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  domain: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /** Domain event */
    post: operations['onDomainEvent'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  suppression: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /** An address was added to the suppression list, or removed from it */
    post: operations['onSuppressionEvent'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  webhook: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /** An endpoint was disabled, or a test was requested */
    post: operations['onWebhookEvent'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
}
export interface components {
  schemas: {
    AcceptedBatch: {
      /** @example bt_01kajc8wz6h3xkq3m1x8e6v5tn */
      id: string;
      /** @description How many emails were queued */
      total: number;
      /** @enum {string} */
      status: 'queued';
      /**
       * Format: date-time
       * @description UTC with milliseconds
       */
      created_at: string;
    };
    AcceptedChatMessage: {
      /** @example wa_01kajce1x8m4n6p0r2t5v7w9yz */
      id: string;
      /** @enum {string} */
      status: 'queued';
      type: components['schemas']['ChatMessageType'];
      /**
       * @description E.164
       * @example +12025550142
       */
      from: string;
      /**
       * @description Where it goes to, ISO 3166-1 alpha-2
       * @example CA
       */
      country: string;
      /**
       * Format: date-time
       * @description UTC with milliseconds
       */
      created_at: string;
    };
    AcceptedEmail: {
      /** @example em_01kajc8wz6h3xkq3m1x8e6v5tn */
      id: string;
      /** @enum {string} */
      status: 'queued' | 'scheduled';
      /**
       * Format: date-time
       * @description UTC with milliseconds
       */
      created_at: string;
      /**
       * Format: date-time
       * @description UTC with milliseconds
       */
      scheduled_at: string | null;
    };
    ApiKey: {
      id: string;
      /** @description For people */
      name: string | null;
      /** @description What it may do: everything; send, move and cancel, and read nothing; or read everything but keys, and change nothing */
      preset: components['schemas']['ApiKeyPreset'];
      /** @description The only domains it may send from, and then no chat-app messages; null is every one */
      domain_ids: string[] | null;
      /**
       * Format: date-time
       * @description From then on it is refused; null is never
       */
      expires_at: string | null;
      /** @description Addresses and ranges it may be used from; null is anywhere */
      allowed_ips: string[] | null;
      /**
       * Format: date-time
       * @description To about a minute; null is never
       */
      last_used_at: string | null;
      /**
       * Format: date-time
       * @description UTC with milliseconds
       */
      created_at: string;
    };
    ApiKeyList: {
      keys: components['schemas']['ApiKey'][];
      /** @description Whether there is a next page */
      has_more: boolean;
      /** @description Leads to the next page; null on the last */
      next_cursor: string | null;
    };
    /** @enum {string} */
    ApiKeyPreset: 'full_access' | 'sending_access' | 'read_only';
    Attachment: {
      /** @example att_01kajc8wz6h3xkq3m1x8e6v5tn */
      id: string;
      /** @example invoice.pdf */
      filename: string;
      /** @example application/pdf */
      content_type: string;
      /**
       * @description Bytes of the file, decoded
       * @example 48213
       */
      size: number;
      /** @description Set when it is embedded inline */
      content_id: string | null;
      inline: boolean;
      /**
       * Format: date-time
       * @description 30 days after the send; the file is deleted then
       */
      expires_at: string;
      /** @description Signed link, valid for one hour, no API key needed; null after expires_at */
      download_url: string | null;
    };
    AttachmentInput: {
      /**
       * @description Up to 255 characters, no path; its extension sets the content type when none is given
       * @example invoice.pdf
       */
      filename: string;
      /**
       * @description The file in base64; content or path, not both
       * @example SGVsbG8=
       */
      content?: string | null;
      /**
       * @description A public http or https URL, fetched once while the request runs
       * @example https://example.com/invoice.pdf
       */
      path?: string | null;
      /**
       * @description MIME type; that of the filename when left out
       * @example application/pdf
       */
      content_type?: string | null;
      /**
       * @description Embeds the file inline, for `cid:<content_id>` in the HTML; letters, digits, ., _, @ and -, up to 128, unique within the email
       * @example logo
       */
      content_id?: string | null;
    };
    AttachmentList: {
      attachments: components['schemas']['Attachment'][];
    };
    AttachmentMetadata: {
      /** @example att_01kajc8wz6h3xkq3m1x8e6v5tn */
      id: string;
      /** @example invoice.pdf */
      filename: string;
      /** @example application/pdf */
      content_type: string;
      /**
       * @description Bytes of the file, decoded
       * @example 48213
       */
      size: number;
      /** @description Set when it is embedded inline */
      content_id: string | null;
      inline: boolean;
    };
    Batch: {
      id: string;
      total: number;
      /** @description processing once the first email was sent or has ended, completed when none is queued or scheduled */
      status: components['schemas']['BatchStatus'];
      /**
       * Format: date-time
       * @description UTC with milliseconds
       */
      created_at: string;
      /**
       * Format: date-time
       * @description UTC with milliseconds
       */
      completed_at: string | null;
      counts: components['schemas']['EmailCounts'];
    };
    /** @description One email */
    BatchEmail: {
      /**
       * @description The sender; its domain must be registered and verified
       * @example Example <hello@example.com>
       */
      from: string;
      /**
       * @description 1 to 50 recipients
       * @example Ada <ada@example.com>
       * @example [
       *       "ada@example.com",
       *       "grace@example.com"
       *     ]
       */
      to: string | string[];
      /**
       * @description 1 to 50 recipients of a copy
       * @example Ada <ada@example.com>
       * @example [
       *       "ada@example.com",
       *       "grace@example.com"
       *     ]
       */
      cc?: string | string[] | null;
      /**
       * @description 1 to 50 recipients whom the others do not see
       * @example Ada <ada@example.com>
       * @example [
       *       "ada@example.com",
       *       "grace@example.com"
       *     ]
       */
      bcc?: string | string[] | null;
      /**
       * @description Where replies go
       * @example Ada <ada@example.com>
       * @example [
       *       "ada@example.com",
       *       "grace@example.com"
       *     ]
       */
      reply_to?: string | string[] | null;
      /** @example Welcome to Example */
      subject: string;
      /** @description HTML body; html, text or both */
      html?: string | null;
      /** @description Plain text body; html, text or both */
      text?: string | null;
      /** @description Default false */
      marketing?: boolean | null;
      /** @description Labels for filters and counts; not sent to recipients */
      tags?: components['schemas']['Tag'][] | null;
      /**
       * @description Up to 20 custom headers. Control headers of email providers, such as X-PM-*, are refused.
       * @example {
       *       "X-Order": "4711"
       *     }
       */
      headers?: {
        [key: string]: string;
      } | null;
      /** @description ISO 8601 instant with an offset, in the future, at most 30 days ahead */
      scheduled_at?: string | null;
    };
    BatchEvent: {
      /** @description The same for every attempt, and in `webhook-id` */
      id: string;
      type: components['schemas']['BatchEventType'];
      /**
       * Format: date-time
       * @description UTC with milliseconds
       */
      created_at: string;
      data: components['schemas']['BatchEventData'];
    };
    BatchEventData: {
      batchId: string;
      total: number;
      status: components['schemas']['BatchStatus'];
      counts: components['schemas']['EmailCounts'];
      /**
       * Format: date-time
       * @description UTC with milliseconds
       */
      completedAt?: string;
    };
    /** @enum {string} */
    BatchEventType: 'batch.completed';
    BatchList: {
      batches: components['schemas']['Batch'][];
      /** @description Whether there is a next page */
      has_more: boolean;
      /** @description Leads to the next page; null on the last */
      next_cursor: string | null;
    };
    /** @enum {string} */
    BatchStatus: 'queued' | 'processing' | 'completed' | 'canceled';
    /** @enum {string} */
    BounceReason:
      | 'mailbox_not_found'
      | 'mailbox_inactive'
      | 'dns_failure'
      | 'policy_block'
      | 'provider_suppressed'
      | 'mailbox_full'
      | 'spam_block'
      | 'reputation_block'
      | 'authentication_failure'
      | 'rate_limited'
      | 'message_too_large'
      | 'content_rejected'
      | 'unknown';
    CanceledBatch: {
      id: string;
      /** @description processing once the first email was sent or has ended, completed when none is queued or scheduled */
      status: components['schemas']['BatchStatus'];
      /** @description How many emails were called back */
      canceled: number;
    };
    CanceledEmail: {
      id: string;
      /** @enum {string} */
      status: 'canceled';
    };
    ChatMessage: {
      /** @example wa_01kajce1x8m4n6p0r2t5v7w9yz */
      id: string;
      status: components['schemas']['ChatMessageStatus'];
      type: components['schemas']['ChatMessageType'];
      /**
       * @description E.164
       * @example +12025550142
       */
      from: string;
      /**
       * @description Where it goes to, ISO 3166-1 alpha-2
       * @example CA
       */
      country: string;
      /**
       * Format: date-time
       * @description UTC with milliseconds
       */
      created_at: string;
      /**
       * @description E.164
       * @example +14165550123
       */
      to: string;
      /** @description Why it failed */
      error: string | null;
      /** @description The provider's own code for that */
      error_code: string | null;
      /**
       * Format: date-time
       * @description UTC with milliseconds
       */
      last_event_at: string;
      text: string | null;
      preview_url: boolean;
      template: {
        name: string;
        language:
          | string
          | {
              code: string;
            };
        components?: unknown;
      } | null;
      image: {
        link: string;
        caption?: string | null;
      } | null;
      document: {
        link: string;
        caption?: string | null;
        filename?: string | null;
      } | null;
      /** @description Oldest first */
      events: components['schemas']['ChatMessageTimelineEntry'][];
    };
    ChatMessageEvent: {
      /** @description The same for every attempt, and in `webhook-id` */
      id: string;
      type: components['schemas']['ChatMessageEventType'];
      /**
       * Format: date-time
       * @description UTC with milliseconds
       */
      created_at: string;
      data: components['schemas']['ChatMessageEventData'];
    };
    ChatMessageEventData: {
      messageId: string;
      /** @description E.164 */
      from: string;
      /** @description E.164 */
      to: string;
      /** @description ISO 3166-1 alpha-2 */
      country: string;
      type: components['schemas']['ChatMessageType'];
      /** @description That of the message after the event */
      status: components['schemas']['ChatMessageStatus'];
      /** @description Why it failed */
      error?: string;
      /** @description The provider's own code for that */
      errorCode?: string;
    };
    /** @enum {string} */
    ChatMessageEventType: 'chatapp.queued' | 'chatapp.sent' | 'chatapp.delivered' | 'chatapp.read' | 'chatapp.failed';
    /** @enum {string} */
    ChatMessageStatus: 'queued' | 'sent' | 'delivered' | 'read' | 'failed';
    ChatMessageSummary: {
      /** @example wa_01kajce1x8m4n6p0r2t5v7w9yz */
      id: string;
      status: components['schemas']['ChatMessageStatus'];
      type: components['schemas']['ChatMessageType'];
      /**
       * @description E.164
       * @example +12025550142
       */
      from: string;
      /**
       * @description Where it goes to, ISO 3166-1 alpha-2
       * @example CA
       */
      country: string;
      /**
       * Format: date-time
       * @description UTC with milliseconds
       */
      created_at: string;
      /**
       * @description E.164
       * @example +14165550123
       */
      to: string;
      /** @description Why it failed */
      error: string | null;
      /** @description The provider's own code for that */
      error_code: string | null;
      /**
       * Format: date-time
       * @description UTC with milliseconds
       */
      last_event_at: string;
    };
    ChatMessageSummaryList: {
      messages: components['schemas']['ChatMessageSummary'][];
      /** @description Whether there is a next page */
      has_more: boolean;
      /** @description Leads to the next page; null on the last */
      next_cursor: string | null;
    };
    ChatMessageTimelineEntry: {
      type: components['schemas']['ChatMessageEventType'];
      /**
       * Format: date-time
       * @description UTC with milliseconds
       */
      created_at: string;
    };
    /** @enum {string} */
    ChatMessageType: 'text' | 'template' | 'image' | 'document';
    ChatNumber: {
      id: string;
      /** @description E.164 */
      number: string;
      provider: components['schemas']['ChatProvider'];
      /** @description meta: what it calls the number */
      phone_number_id: string | null;
      /** @description twilio: the account of its own */
      account_sid: string | null;
      /** @description Whether it has a token of its own, which is never shown */
      own_token: boolean;
      /**
       * Format: date-time
       * @description UTC with milliseconds
       */
      created_at: string;
      /** @description twilio: which of its contents each template is */
      templates: {
        name: string;
        language: string;
        content_sid: string;
        variables: string[];
      }[];
    };
    ChatNumberSummary: {
      id: string;
      /** @description E.164 */
      number: string;
      provider: components['schemas']['ChatProvider'];
      /** @description meta: what it calls the number */
      phone_number_id: string | null;
      /** @description twilio: the account of its own */
      account_sid: string | null;
      /** @description Whether it has a token of its own, which is never shown */
      own_token: boolean;
      /**
       * Format: date-time
       * @description UTC with milliseconds
       */
      created_at: string;
    };
    ChatNumberSummaryList: {
      numbers: components['schemas']['ChatNumberSummary'][];
      /** @description Whether there is a next page */
      has_more: boolean;
      /** @description Leads to the next page; null on the last */
      next_cursor: string | null;
    };
    /** @enum {string} */
    ChatProvider: 'twilio' | 'meta';
    ChatTemplateMapping: {
      /** @example receipt */
      name: string;
      /** @example en_US */
      language: string;
      /**
       * @description The content that it is
       * @example HX00000000000000000000000000000000
       */
      content_sid: string;
      /**
       * @description The content's variables in the order of a message's parameters: header, body, buttons
       * @example [
       *       "1",
       *       "2"
       *     ]
       */
      variables?: string[] | null;
    };
    /** @description A number */
    ConnectChatNumberRequest: {
      /**
       * @description In international form
       * @example +12025550142
       */
      number: string;
      /**
       * @description Who carries its messages
       * @example twilio
       */
      provider: components['schemas']['ChatProvider'];
      /**
       * @description meta: what it calls the number; required there
       * @example 106540352242922
       */
      phone_number_id?: string | null;
      /** @description meta: a token of the account that owns the number; required there */
      access_token?: string | null;
      /**
       * @description twilio: the account that owns the number
       * @example AC00000000000000000000000000000000
       */
      account_sid?: string | null;
      /** @description twilio: the token of that account; required there */
      auth_token?: string | null;
      /** @description twilio: which of its contents each template is */
      templates?: components['schemas']['ChatTemplateMapping'][] | null;
    };
    /** @description A key */
    CreateApiKeyRequest: {
      /**
       * @description What it may do: everything; send, move and cancel, and read nothing; or read everything but keys, and change nothing
       * @example sending_access
       */
      preset: components['schemas']['ApiKeyPreset'];
      /**
       * @description For people
       * @example Shop, production
       */
      name?: string | null;
      /** @description The only domains it may send from, and then no chat-app messages; null is every one */
      domain_ids?: string[] | null;
      /** @description ISO 8601 instant with an offset, in the future; from then on it is refused; null is never */
      expires_at?: string | null;
      /**
       * @description Addresses and ranges it may be used from; null is anywhere
       * @example [
       *       "203.0.113.7",
       *       "2001:db8::/32"
       *     ]
       */
      allowed_ips?: string[] | null;
    };
    /** @description A domain */
    CreateDomainRequest: {
      /**
       * @description A domain name, also in Unicode; a name below another one is registered on its own
       * @example example.com
       * @example mail.example.com
       */
      name: string;
    };
    CreateSuppressionsRequest: {
      /**
       * @description One address; email or emails, not both
       * @example ada@example.net
       * @example Ada <ada@example.net>
       */
      email?: string | null;
      /**
       * @description 1 to 1,000 addresses
       * @example [
       *       "ada@example.net",
       *       "grace@example.net"
       *     ]
       */
      emails?: string[] | null;
    };
    /** @description An endpoint */
    CreateWebhookRequest: {
      /**
       * @description Where events are posted to: https, on the public internet
       * @example https://example.com/webhooks/sendwright
       */
      url: string;
      /**
       * @description Types that it wants; none means all, also those that come later
       * @example [
       *       "email.delivered",
       *       "email.bounced"
       *     ]
       */
      events?: components['schemas']['EventType'][] | null;
      /**
       * @description Your own words
       * @example Order system
       */
      description?: string | null;
    };
    CreatedApiKey: {
      id: string;
      /** @description For people */
      name: string | null;
      /** @description What it may do: everything; send, move and cancel, and read nothing; or read everything but keys, and change nothing */
      preset: components['schemas']['ApiKeyPreset'];
      /** @description The only domains it may send from, and then no chat-app messages; null is every one */
      domain_ids: string[] | null;
      /**
       * Format: date-time
       * @description From then on it is refused; null is never
       */
      expires_at: string | null;
      /** @description Addresses and ranges it may be used from; null is anywhere */
      allowed_ips: string[] | null;
      /**
       * Format: date-time
       * @description To about a minute; null is never
       */
      last_used_at: string | null;
      /**
       * Format: date-time
       * @description UTC with milliseconds
       */
      created_at: string;
      /** @description The key itself, shown here and never again */
      api_key: string;
    };
    CreatedSuppressions: {
      suppressions: components['schemas']['Suppression'][];
    };
    Delivery: {
      id: string;
      /** @description The `webhook-id` of its requests */
      event_id: string;
      type: components['schemas']['EventType'];
      /** @description pending until a try is answered 2xx or all ten have failed */
      status: components['schemas']['DeliveryStatus'];
      /**
       * Format: date-time
       * @description UTC with milliseconds
       */
      created_at: string;
      /**
       * Format: date-time
       * @description Of one that is pending
       */
      next_attempt_at: string | null;
      /** @description The request body of every attempt */
      payload:
        | components['schemas']['EmailEvent']
        | components['schemas']['BatchEvent']
        | components['schemas']['ChatMessageEvent']
        | components['schemas']['DomainEvent']
        | components['schemas']['SuppressionEvent']
        | components['schemas']['WebhookEvent'];
      /** @description Every try, oldest first */
      attempts: {
        /**
         * Format: date-time
         * @description UTC with milliseconds
         */
        at: string;
        /** @description Null when no answer came */
        status_code: number | null;
        duration_ms: number;
        /** @description The first 4 kB of the answer */
        response: string | null;
        /** @description Why there was no answer, or why it does not count */
        error: string | null;
      }[];
    };
    /** @enum {string} */
    DeliveryStatus: 'pending' | 'succeeded' | 'failed';
    DeliverySummary: {
      id: string;
      /** @description The `webhook-id` of its requests */
      event_id: string;
      type: components['schemas']['EventType'];
      /** @description pending until a try is answered 2xx or all ten have failed */
      status: components['schemas']['DeliveryStatus'];
      /**
       * Format: date-time
       * @description UTC with milliseconds
       */
      created_at: string;
      /**
       * Format: date-time
       * @description Of one that is pending
       */
      next_attempt_at: string | null;
    };
    DeliverySummaryList: {
      deliveries: components['schemas']['DeliverySummary'][];
      /** @description Whether there is a next page */
      has_more: boolean;
      /** @description Leads to the next page; null on the last */
      next_cursor: string | null;
    };
    Domain: {
      id: string;
      /** @description As an A-label, in lower case */
      name: string;
      /** @description `pending`: it must still prove itself. `verified`: email can be sent from it. `failed`: not proved within 72 hours, lost, or proved by another account; verify it to begin anew. */
      status: components['schemas']['DomainStatus'];
      /** @description Taken on trust by the operator: verified whatever DNS says */
      trusted: boolean;
      /**
       * Format: date-time
       * @description UTC with milliseconds
       */
      created_at: string;
      /**
       * Format: date-time
       * @description Null unless it is verified
       */
      verified_at: string | null;
      /**
       * Format: date-time
       * @description When DNS was last asked
       */
      last_checked_at: string | null;
      /**
       * Format: date-time
       * @description When it will be asked again; null when that is not planned
       */
      next_check_at: string | null;
      /** @description What belongs into its DNS, and what is there */
      records: components['schemas']['DomainRecord'][];
    };
    DomainEvent: {
      /** @description The same for every attempt, and in `webhook-id` */
      id: string;
      type: components['schemas']['DomainEventType'];
      /**
       * Format: date-time
       * @description UTC with milliseconds
       */
      created_at: string;
      data: components['schemas']['DomainEventData'];
    };
    DomainEventData: {
      domainId: string;
      name: string;
      status: components['schemas']['DomainStatus'];
    };
    /** @enum {string} */
    DomainEventType: 'domain.created' | 'domain.verified' | 'domain.failed' | 'domain.deleted';
    DomainRecord: {
      /** @description What it is for */
      record: components['schemas']['DomainRecordKind'];
      /** @enum {string} */
      type: 'TXT' | 'CNAME';
      /** @description In full; many DNS providers add the domain themselves */
      name: string;
      value: string;
      /** @description Null: none of these types has one */
      priority: number | null;
      /** @description Seconds, as advice */
      ttl: number;
      /** @description Whether the domain cannot be verified without it; the others are advice */
      required: boolean;
      /** @description `pending`: not there yet, or not asked for. `verified`: right. `failed`: there, and wrong. */
      status: components['schemas']['DomainRecordStatus'];
      /** @description What DNS answered, none or several values; null when it has not answered yet */
      found: string[] | null;
      /** @description What to change */
      error: string | null;
    };
    /** @enum {string} */
    DomainRecordKind: 'OWNERSHIP' | 'DKIM' | 'SPF' | 'RETURN_PATH' | 'DMARC';
    /** @enum {string} */
    DomainRecordStatus: 'pending' | 'verified' | 'failed';
    /** @enum {string} */
    DomainStatus: 'pending' | 'verified' | 'failed';
    DomainSummary: {
      id: string;
      /** @description As an A-label, in lower case */
      name: string;
      /** @description `pending`: it must still prove itself. `verified`: email can be sent from it. `failed`: not proved within 72 hours, lost, or proved by another account; verify it to begin anew. */
      status: components['schemas']['DomainStatus'];
      /** @description Taken on trust by the operator: verified whatever DNS says */
      trusted: boolean;
      /**
       * Format: date-time
       * @description UTC with milliseconds
       */
      created_at: string;
      /**
       * Format: date-time
       * @description Null unless it is verified
       */
      verified_at: string | null;
      /**
       * Format: date-time
       * @description When DNS was last asked
       */
      last_checked_at: string | null;
      /**
       * Format: date-time
       * @description When it will be asked again; null when that is not planned
       */
      next_check_at: string | null;
    };
    DomainSummaryList: {
      domains: components['schemas']['DomainSummary'][];
      /** @description Whether there is a next page */
      has_more: boolean;
      /** @description Leads to the next page; null on the last */
      next_cursor: string | null;
    };
    Email: {
      id: string;
      batch_id: string | null;
      from: string;
      to: string[];
      cc: string[] | null;
      bcc: string[] | null;
      reply_to: string[] | null;
      subject: string;
      marketing: boolean;
      tags: components['schemas']['Tag'][];
      headers: {
        [key: string]: string;
      };
      status: components['schemas']['EmailStatus'];
      error: string | null;
      bounce_reason: components['schemas']['BounceReason'] | null;
      /**
       * Format: date-time
       * @description UTC with milliseconds
       */
      created_at: string;
      /**
       * Format: date-time
       * @description UTC with milliseconds
       */
      scheduled_at: string | null;
      /**
       * Format: date-time
       * @description UTC with milliseconds
       */
      last_event_at: string;
      /** @description Oldest first */
      events: components['schemas']['EmailTimelineEntry'][];
      /** @description What was sent along; no download links */
      attachments: components['schemas']['AttachmentMetadata'][];
    };
    EmailContent: {
      subject: string;
      html: string | null;
      text: string | null;
      /** @description The custom headers */
      headers: {
        [key: string]: string;
      };
    };
    /** @description How many emails are in each status that occurs */
    EmailCounts: {
      queued?: number;
      scheduled?: number;
      sent?: number;
      delivery_delayed?: number;
      delivered?: number;
      opened?: number;
      clicked?: number;
      bounced?: number;
      complained?: number;
      suppressed?: number;
      canceled?: number;
      rejected?: number;
      failed?: number;
    };
    EmailEvent: {
      /** @description The same for every attempt, and in `webhook-id` */
      id: string;
      type: components['schemas']['EmailEventType'];
      /**
       * Format: date-time
       * @description UTC with milliseconds
       */
      created_at: string;
      data: components['schemas']['EmailEventData'];
    };
    EmailEventData: {
      emailId: string;
      /** @description When it was sent in a batch */
      batchId?: string;
      from: string;
      to?: string[];
      subject: string;
      tags?: components['schemas']['Tag'][];
      /** @description That of the email after the event */
      status: components['schemas']['EmailStatus'];
      /**
       * Format: date-time
       * @description Of `email.scheduled` and `email.rescheduled`: when it will be sent
       */
      scheduledAt?: string;
      /** @description Whom of its recipients the event is about, in lower case */
      recipient?: string;
      /** @description What the server or the provider said */
      error?: string;
      bounceReason?: components['schemas']['BounceReason'];
      click?: {
        link: string;
      };
      /** @description What is shortened or left out to stay below 20 kB */
      truncated?: ('to' | 'tags' | 'subject')[];
    };
    /** @enum {string} */
    EmailEventType:
      | 'email.queued'
      | 'email.scheduled'
      | 'email.rescheduled'
      | 'email.sent'
      | 'email.delivery_delayed'
      | 'email.delivered'
      | 'email.opened'
      | 'email.clicked'
      | 'email.bounced'
      | 'email.complained'
      | 'email.unsubscribed'
      | 'email.suppressed'
      | 'email.canceled'
      | 'email.rejected'
      | 'email.failed';
    /** @enum {string} */
    EmailStatus:
      | 'queued'
      | 'scheduled'
      | 'sent'
      | 'delivery_delayed'
      | 'delivered'
      | 'opened'
      | 'clicked'
      | 'bounced'
      | 'complained'
      | 'suppressed'
      | 'canceled'
      | 'rejected'
      | 'failed';
    EmailSummary: {
      id: string;
      batch_id: string | null;
      from: string;
      to: string[];
      subject: string;
      marketing: boolean;
      tags: components['schemas']['Tag'][];
      status: components['schemas']['EmailStatus'];
      error: string | null;
      bounce_reason: components['schemas']['BounceReason'] | null;
      /**
       * Format: date-time
       * @description UTC with milliseconds
       */
      created_at: string;
      /**
       * Format: date-time
       * @description UTC with milliseconds
       */
      scheduled_at: string | null;
      /**
       * Format: date-time
       * @description UTC with milliseconds
       */
      last_event_at: string;
    };
    EmailSummaryList: {
      emails: components['schemas']['EmailSummary'][];
      /** @description Whether there is a next page */
      has_more: boolean;
      /** @description Leads to the next page; null on the last */
      next_cursor: string | null;
    };
    EmailTimelineEntry: {
      type: components['schemas']['EmailEventType'];
      /**
       * Format: date-time
       * @description UTC with milliseconds
       */
      created_at: string;
    };
    EraseRecipientRequest: {
      /**
       * @description The address to erase
       * @example ada@example.net
       */
      email: string;
      /** @description The next_cursor of the previous answer, to go on with the same address */
      cursor?: string;
    };
    Erasure: {
      /** @description What this request has changed */
      report: {
        /** @description Emails in whose recipients a placeholder replaced the address */
        emails: number;
        /** @description Emails to this recipient alone whose bodies and headers were erased */
        contents: number;
        /** @description Files of those emails */
        files: number;
        /** @description Entries of timelines */
        events: number;
        /** @description States of single recipients */
        recipients: number;
        /** @description Providers' replies that named the address */
        attempts: number;
        /** @description Webhook events */
        webhook_events: number;
        /** @description Entries of the audit log */
        audit_entries: number;
        /** @description Callbacks about no known email, deleted */
        provider_callbacks: number;
        /** @description Suppressions that a keyed hash has replaced */
        suppressions: number;
      };
      /** @description Whether to repeat the request with next_cursor */
      has_more: boolean;
      next_cursor: string | null;
    };
    /** @description An error */
    Error: {
      error: {
        /**
         * @description For machines; see the table of error codes.
         * @example validation_error
         */
        code: components['schemas']['ErrorCode'];
        /**
         * @description For people; begins with the field at fault, if there is one.
         * @example subject: must be 1 to 998 characters
         */
        message: string;
        /**
         * @description Dotted path of the first field at fault.
         * @example to.3
         */
        param?: string;
        /** @example req_01kajc8wz6h3xkq3m1x8e6v5tn */
        request_id: string;
      };
    };
    /** @enum {string} */
    ErrorCode:
      | 'invalid_json'
      | 'invalid_idempotency_key'
      | 'unauthorized'
      | 'insufficient_scope'
      | 'domain_not_found'
      | 'domain_not_verified'
      | 'not_found'
      | 'method_not_allowed'
      | 'conflict'
      | 'limit_exceeded'
      | 'invalid_idempotent_request'
      | 'concurrent_idempotent_requests'
      | 'content_erased'
      | 'payload_too_large'
      | 'unsupported_media_type'
      | 'validation_error'
      | 'invalid_attachment'
      | 'not_scheduled'
      | 'no_chatapp_account'
      | 'rate_limit_exceeded'
      | 'quota_exceeded'
      | 'internal_error'
      | 'unavailable';
    /** @enum {string} */
    EventType:
      | 'email.queued'
      | 'email.scheduled'
      | 'email.rescheduled'
      | 'email.sent'
      | 'email.delivery_delayed'
      | 'email.delivered'
      | 'email.opened'
      | 'email.clicked'
      | 'email.bounced'
      | 'email.complained'
      | 'email.unsubscribed'
      | 'email.suppressed'
      | 'email.canceled'
      | 'email.rejected'
      | 'email.failed'
      | 'batch.completed'
      | 'chatapp.queued'
      | 'chatapp.sent'
      | 'chatapp.delivered'
      | 'chatapp.read'
      | 'chatapp.failed'
      | 'domain.created'
      | 'domain.verified'
      | 'domain.failed'
      | 'domain.deleted'
      | 'suppression.added'
      | 'suppression.removed'
      | 'webhook.disabled'
      | 'webhook.test';
    Health: {
      /** @enum {string} */
      status: 'ok';
    };
    /** @description Which deliveries */
    ReplayDeliveriesRequest: {
      /** @description Events that happened at this instant or later */
      since: string;
      /** @description And not after this one; now, if left out */
      until?: string | null;
      /**
       * @description Only deliveries that have this status now; else all
       * @example failed
       */
      status?: components['schemas']['DeliveryStatus'] | null;
    };
    ReplayedDeliveries: {
      /** @description How many deliveries are sent again */
      replayed: number;
    };
    RescheduleEmailRequest: {
      /** @description ISO 8601 instant with an offset, in the future, at most 30 days ahead */
      scheduled_at: string;
    };
    RescheduledEmail: {
      id: string;
      /** @enum {string} */
      status: 'scheduled';
      /**
       * Format: date-time
       * @description UTC with milliseconds
       */
      scheduled_at: string;
    };
    /** @description A batch */
    SendBatchRequest: {
      /** @description 1 to 10,000 emails, each with a time and a sender of its own if need be */
      emails: components['schemas']['BatchEmail'][];
    };
    /** @description One chat-app message */
    SendChatMessageRequest: {
      /**
       * @description The number it comes from; needed when several are connected
       * @example +12025550142
       */
      from?: string | null;
      /**
       * @description The recipient, in international form
       * @example +14165550123
       * @example +1 (416) 555-0123
       */
      to: string;
      /**
       * @description Default text; any other needs the object of its name
       * @example text
       */
      type?: components['schemas']['ChatMessageType'] | null;
      /**
       * @description The message, or the caption of a file without one
       * @example On its way!
       */
      text?: string | null;
      /** @description Default false: whether the first link of a text is shown with a preview */
      preview_url?: boolean | null;
      /** @description A template that WhatsApp has approved */
      template?: {
        name: string;
        /**
         * @description Its code, bare or as {code}
         * @example en_US
         * @example {
         *       "code": "en_US"
         *     }
         */
        language:
          | string
          | {
              code: string;
            };
        /** @description What fills its variables; passed on as it is */
        components?: unknown;
      } | null;
      /** @description An image */
      image?: {
        /**
         * @description A public https URL; the provider fetches it
         * @example https://example.com/receipt.pdf
         */
        link: string;
        /**
         * @description What stands below; without it, `text`
         * @example Your receipt
         */
        caption?: string | null;
      } | null;
      /** @description A file */
      document?: {
        /**
         * @description A public https URL; the provider fetches it
         * @example https://example.com/receipt.pdf
         */
        link: string;
        /**
         * @description What stands below; without it, `text`
         * @example Your receipt
         */
        caption?: string | null;
        /**
         * @description What the recipient sees it called
         * @example receipt.pdf
         */
        filename?: string | null;
      } | null;
    };
    /** @description One email */
    SendEmailRequest: {
      /**
       * @description The sender; its domain must be registered and verified
       * @example Example <hello@example.com>
       */
      from: string;
      /**
       * @description 1 to 50 recipients
       * @example Ada <ada@example.com>
       * @example [
       *       "ada@example.com",
       *       "grace@example.com"
       *     ]
       */
      to: string | string[];
      /**
       * @description 1 to 50 recipients of a copy
       * @example Ada <ada@example.com>
       * @example [
       *       "ada@example.com",
       *       "grace@example.com"
       *     ]
       */
      cc?: string | string[] | null;
      /**
       * @description 1 to 50 recipients whom the others do not see
       * @example Ada <ada@example.com>
       * @example [
       *       "ada@example.com",
       *       "grace@example.com"
       *     ]
       */
      bcc?: string | string[] | null;
      /**
       * @description Where replies go
       * @example Ada <ada@example.com>
       * @example [
       *       "ada@example.com",
       *       "grace@example.com"
       *     ]
       */
      reply_to?: string | string[] | null;
      /** @example Welcome to Example */
      subject: string;
      /** @description HTML body; html, text or both */
      html?: string | null;
      /** @description Plain text body; html, text or both */
      text?: string | null;
      /** @description Default false */
      marketing?: boolean | null;
      /** @description Labels for filters and counts; not sent to recipients */
      tags?: components['schemas']['Tag'][] | null;
      /**
       * @description Up to 20 custom headers. Control headers of email providers, such as X-PM-*, are refused.
       * @example {
       *       "X-Order": "4711"
       *     }
       */
      headers?: {
        [key: string]: string;
      } | null;
      /** @description ISO 8601 instant with an offset, in the future, at most 30 days ahead */
      scheduled_at?: string | null;
      /** @description Up to 20 files, 30 MB in total before base64 */
      attachments?: components['schemas']['AttachmentInput'][] | null;
    };
    Suppression: {
      /** @example sup_01kajc8wz6h3xkq3m1x8e6v5tn */
      id: string;
      /**
       * @description In lower case
       * @example ada@example.net
       */
      email: string;
      /** @description How it came onto the list. With unsubscribe it gets no marketing email, otherwise nothing at all. */
      origin: components['schemas']['SuppressionOrigin'];
      /** @description The bounce_reason, if a bounce led to it */
      reason: components['schemas']['BounceReason'] | null;
      /** @description The email that led to it, if one did */
      email_id: string | null;
      /**
       * Format: date-time
       * @description UTC with milliseconds
       */
      created_at: string;
    };
    SuppressionEvent: {
      /** @description The same for every attempt, and in `webhook-id` */
      id: string;
      type: components['schemas']['SuppressionEventType'];
      /**
       * Format: date-time
       * @description UTC with milliseconds
       */
      created_at: string;
      data: components['schemas']['SuppressionEventData'];
    };
    SuppressionEventData: {
      suppressionId: string;
      /** @description In lower case */
      email: string;
      origin: components['schemas']['SuppressionOrigin'];
      bounceReason?: components['schemas']['BounceReason'];
      /** @description The email that led to it */
      emailId?: string;
    };
    /** @enum {string} */
    SuppressionEventType: 'suppression.added' | 'suppression.removed';
    SuppressionList: {
      suppressions: components['schemas']['Suppression'][];
      /** @description Whether there is a next page */
      has_more: boolean;
      /** @description Leads to the next page; null on the last */
      next_cursor: string | null;
    };
    /** @enum {string} */
    SuppressionOrigin: 'bounce' | 'complaint' | 'unsubscribe' | 'manual' | 'provider';
    Tag: {
      /** @description Unique within the email */
      name: string;
      /** @description What it is tagged with */
      value: string;
    };
    TagList: {
      /** @description By name, then value */
      tags: {
        /** @example kind */
        name: string;
        /** @example receipt */
        value: string;
        /**
         * @description How many stored emails carry it
         * @example 17
         */
        count: number;
      }[];
    };
    /** @description What is to be changed; what is left out stays */
    UpdateWebhookRequest: {
      /**
       * @description Where events are posted to: https, on the public internet
       * @example https://example.com/webhooks/sendwright
       */
      url?: string | null;
      /**
       * @description Types that it wants; none means all, also those that come later
       * @example [
       *       "email.delivered",
       *       "email.bounced"
       *     ]
       */
      events?: components['schemas']['EventType'][] | null;
      /**
       * @description Your own words
       * @example Order system
       */
      description?: string | null;
      /**
       * @description An endpoint that is disabled gets nothing; what happens meanwhile is not sent later
       * @example enabled
       */
      status?: components['schemas']['WebhookStatus'] | null;
    };
    Webhook: {
      id: string;
      url: string;
      description: string | null;
      /** @description Types that it wants; none means all */
      events: components['schemas']['EventType'][];
      /** @description An endpoint that is disabled gets nothing; what happens meanwhile is not sent later */
      status: components['schemas']['WebhookStatus'];
      /** @description Why it was disabled, when you did not do that yourself */
      disabled_reason: string | null;
      /**
       * Format: date-time
       * @description When it was disabled; null while it is enabled
       */
      disabled_at: string | null;
      /**
       * Format: date-time
       * @description When the first of the failures came that no success has followed
       */
      failing_since: string | null;
      /**
       * Format: date-time
       * @description UTC with milliseconds
       */
      created_at: string;
    };
    WebhookEvent: {
      /** @description The same for every attempt, and in `webhook-id` */
      id: string;
      type: components['schemas']['WebhookEventType'];
      /**
       * Format: date-time
       * @description UTC with milliseconds
       */
      created_at: string;
      data: components['schemas']['WebhookEventData'];
    };
    WebhookEventData: {
      webhookId: string;
      /** @description Of `webhook.disabled`: the URL of the endpoint that was disabled */
      url?: string;
      /** @description Of `webhook.disabled`: why Sendwright disabled it */
      reason?: string;
      /**
       * Format: date-time
       * @description UTC with milliseconds
       */
      failingSince?: string;
    };
    /** @enum {string} */
    WebhookEventType: 'webhook.disabled' | 'webhook.test';
    WebhookList: {
      webhooks: components['schemas']['Webhook'][];
      /** @description Whether there is a next page */
      has_more: boolean;
      /** @description Leads to the next page; null on the last */
      next_cursor: string | null;
    };
    /** @enum {string} */
    WebhookStatus: 'enabled' | 'disabled';
    WebhookWithSecret: {
      id: string;
      url: string;
      description: string | null;
      /** @description Types that it wants; none means all */
      events: components['schemas']['EventType'][];
      /** @description An endpoint that is disabled gets nothing; what happens meanwhile is not sent later */
      status: components['schemas']['WebhookStatus'];
      /** @description Why it was disabled, when you did not do that yourself */
      disabled_reason: string | null;
      /**
       * Format: date-time
       * @description When it was disabled; null while it is enabled
       */
      disabled_at: string | null;
      /**
       * Format: date-time
       * @description When the first of the failures came that no success has followed
       */
      failing_since: string | null;
      /**
       * Format: date-time
       * @description UTC with milliseconds
       */
      created_at: string;
      /**
       * @description Signs what is posted (Standard Webhooks 1.0.0). Shown this once.
       * @example whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw7hYqCJb3p0E=
       */
      secret: string;
    };
  };
  responses: never;
  parameters: never;
  requestBodies: never;
  headers: {
    /** @description Names the request in our log */
    'X-Request-Id': string;
    /** @description Requests that may be made at once after a pause; of an answer 429 about emails: emails */
    'RateLimit-Limit': number;
    /** @description How many of them may be made now */
    'RateLimit-Remaining': number;
    /** @description Seconds until all of them may be made again */
    'RateLimit-Reset': number;
    /** @description Every limit that is on: how many, and in how many seconds they come in */
    'RateLimit-Policy': string;
    /** @description Seconds after which to try again */
    'Retry-After': number;
  };
  pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
  listEmails: {
    parameters: {
      query?: {
        /** @description `name:value`, of letters, digits, `_` and `-`, up to 256 characters each. Repeat the parameter to require up to 10 tags at once. */
        tag?: string | string[];
        /** @description Only emails that have this status now */
        status?: components['schemas']['EmailStatus'];
        /** @description Only emails of this batch */
        batch_id?: string;
        /** @description Most items of the page */
        limit?: number;
        /** @description The `next_cursor` of the previous page, given back with the same filters */
        cursor?: string;
      };
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['EmailSummaryList'];
        };
      };
    };
  };
  sendEmail: {
    parameters: {
      query?: never;
      header?: {
        /** @description A key of your choice, such as the number of an order. A request that is repeated with the same key and body within 24 hours has no further effect: it returns the first response, with `Idempotent-Replayed: true`. */
        'idempotency-key'?: string;
      };
      path?: never;
      cookie?: never;
    };
    /** @description One email */
    requestBody: {
      content: {
        'application/json': components['schemas']['SendEmailRequest'];
      };
    };
    responses: {
      /** @description Accepted */
      202: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['AcceptedEmail'];
        };
      };
    };
  };
  listTags: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['TagList'];
        };
      };
    };
  };
  listBatches: {
    parameters: {
      query?: {
        /** @description Most items of the page */
        limit?: number;
        /** @description The `next_cursor` of the previous page, given back with the same filters */
        cursor?: string;
      };
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['BatchList'];
        };
      };
    };
  };
  sendBatch: {
    parameters: {
      query?: never;
      header?: {
        /** @description A key of your choice, such as the number of an order. A request that is repeated with the same key and body within 24 hours has no further effect: it returns the first response, with `Idempotent-Replayed: true`. */
        'idempotency-key'?: string;
      };
      path?: never;
      cookie?: never;
    };
    /** @description A batch */
    requestBody: {
      content: {
        'application/json': components['schemas']['SendBatchRequest'];
      };
    };
    responses: {
      /** @description Accepted */
      202: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['AcceptedBatch'];
        };
      };
    };
  };
  getBatch: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['Batch'];
        };
      };
    };
  };
  cancelBatch: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['CanceledBatch'];
        };
      };
    };
  };
  getEmail: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['Email'];
        };
      };
    };
  };
  rescheduleEmail: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        id: string;
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['RescheduleEmailRequest'];
      };
    };
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['RescheduledEmail'];
        };
      };
    };
  };
  cancelEmail: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['CanceledEmail'];
        };
      };
    };
  };
  getEmailContent: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['EmailContent'];
        };
      };
    };
  };
  eraseEmailContent: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Deleted */
      204: {
        headers: {
          [name: string]: unknown;
        };
        content?: never;
      };
    };
  };
  listAttachments: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['AttachmentList'];
        };
      };
    };
  };
  getAttachment: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        id: string;
        attachmentId: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['Attachment'];
        };
      };
    };
  };
  downloadAttachment: {
    parameters: {
      query: {
        /** @description Unix seconds */
        expires: string;
        signature: string;
      };
      header?: never;
      path: {
        id: string;
        attachmentId: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/octet-stream': string;
        };
      };
    };
  };
  listChatMessages: {
    parameters: {
      query?: {
        /** @description Only messages that have this status now */
        status?: components['schemas']['ChatMessageStatus'];
        /** @description Only messages to this number, in international form */
        to?: string;
        /** @description Most items of the page */
        limit?: number;
        /** @description The `next_cursor` of the previous page, given back with the same filters */
        cursor?: string;
      };
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['ChatMessageSummaryList'];
        };
      };
    };
  };
  sendChatMessage: {
    parameters: {
      query?: never;
      header?: {
        /** @description A key of your choice, such as the number of an order. A request that is repeated with the same key and body within 24 hours has no further effect: it returns the first response, with `Idempotent-Replayed: true`. */
        'idempotency-key'?: string;
      };
      path?: never;
      cookie?: never;
    };
    /** @description One chat-app message */
    requestBody: {
      content: {
        'application/json': components['schemas']['SendChatMessageRequest'];
      };
    };
    responses: {
      /** @description Accepted */
      202: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['AcceptedChatMessage'];
        };
      };
    };
  };
  listChatNumbers: {
    parameters: {
      query?: {
        /** @description Most items of the page */
        limit?: number;
        /** @description The `next_cursor` of the previous page, given back with the same filters */
        cursor?: string;
      };
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['ChatNumberSummaryList'];
        };
      };
    };
  };
  connectChatNumber: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /** @description A number */
    requestBody: {
      content: {
        'application/json': components['schemas']['ConnectChatNumberRequest'];
      };
    };
    responses: {
      /** @description Created */
      201: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['ChatNumber'];
        };
      };
    };
  };
  getChatNumber: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['ChatNumber'];
        };
      };
    };
  };
  disconnectChatNumber: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Deleted */
      204: {
        headers: {
          [name: string]: unknown;
        };
        content?: never;
      };
    };
  };
  getChatMessage: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['ChatMessage'];
        };
      };
    };
  };
  listDomains: {
    parameters: {
      query?: {
        /** @description Most items of the page */
        limit?: number;
        /** @description The `next_cursor` of the previous page, given back with the same filters */
        cursor?: string;
      };
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['DomainSummaryList'];
        };
      };
    };
  };
  createDomain: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /** @description A domain */
    requestBody: {
      content: {
        'application/json': components['schemas']['CreateDomainRequest'];
      };
    };
    responses: {
      /** @description Created */
      201: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['Domain'];
        };
      };
    };
  };
  getDomain: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['Domain'];
        };
      };
    };
  };
  deleteDomain: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Deleted */
      204: {
        headers: {
          [name: string]: unknown;
        };
        content?: never;
      };
    };
  };
  verifyDomain: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['Domain'];
        };
      };
    };
  };
  listSuppressions: {
    parameters: {
      query?: {
        /** @description Only those of this origin */
        origin?: components['schemas']['SuppressionOrigin'];
        /** @description Only those of this address, in any case */
        email?: string;
        /** @description Most items of the page */
        limit?: number;
        /** @description The `next_cursor` of the previous page, given back with the same filters */
        cursor?: string;
      };
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['SuppressionList'];
        };
      };
    };
  };
  createSuppressions: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['CreateSuppressionsRequest'];
      };
    };
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['Suppression'] | components['schemas']['CreatedSuppressions'];
        };
      };
      /** @description Created */
      201: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['Suppression'] | components['schemas']['CreatedSuppressions'];
        };
      };
    };
  };
  getSuppression: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @description An id, or an address in any case; write + as %2B if your client takes it for a blank */
        idOrEmail: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['Suppression'];
        };
      };
    };
  };
  deleteSuppressions: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /** @description An id, or an address in any case; write + as %2B if your client takes it for a blank */
        idOrEmail: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Deleted */
      204: {
        headers: {
          [name: string]: unknown;
        };
        content?: never;
      };
    };
  };
  eraseRecipient: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['EraseRecipientRequest'];
      };
    };
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['Erasure'];
        };
      };
    };
  };
  listWebhooks: {
    parameters: {
      query?: {
        /** @description Most items of the page */
        limit?: number;
        /** @description The `next_cursor` of the previous page, given back with the same filters */
        cursor?: string;
      };
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['WebhookList'];
        };
      };
    };
  };
  createWebhook: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /** @description An endpoint */
    requestBody: {
      content: {
        'application/json': components['schemas']['CreateWebhookRequest'];
      };
    };
    responses: {
      /** @description Created */
      201: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['WebhookWithSecret'];
        };
      };
    };
  };
  getWebhook: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['Webhook'];
        };
      };
    };
  };
  deleteWebhook: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Deleted */
      204: {
        headers: {
          [name: string]: unknown;
        };
        content?: never;
      };
    };
  };
  updateWebhook: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        id: string;
      };
      cookie?: never;
    };
    /** @description What is to be changed; what is left out stays */
    requestBody: {
      content: {
        'application/json': components['schemas']['UpdateWebhookRequest'];
      };
    };
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['Webhook'];
        };
      };
    };
  };
  rotateWebhookSecret: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['WebhookWithSecret'];
        };
      };
    };
  };
  testWebhook: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Accepted */
      202: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['DeliverySummary'];
        };
      };
    };
  };
  replayDeliveries: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        id: string;
      };
      cookie?: never;
    };
    /** @description Which deliveries */
    requestBody: {
      content: {
        'application/json': components['schemas']['ReplayDeliveriesRequest'];
      };
    };
    responses: {
      /** @description Accepted */
      202: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['ReplayedDeliveries'];
        };
      };
    };
  };
  listDeliveries: {
    parameters: {
      query?: {
        /** @description Only deliveries that have this status now */
        status?: components['schemas']['DeliveryStatus'];
        /** @description Most items of the page */
        limit?: number;
        /** @description The `next_cursor` of the previous page, given back with the same filters */
        cursor?: string;
      };
      header?: never;
      path: {
        id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['DeliverySummaryList'];
        };
      };
    };
  };
  getDelivery: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        id: string;
        deliveryId: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['Delivery'];
        };
      };
    };
  };
  replayDelivery: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        id: string;
        deliveryId: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Accepted */
      202: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['DeliverySummary'];
        };
      };
    };
  };
  listApiKeys: {
    parameters: {
      query?: {
        /** @description Most items of the page */
        limit?: number;
        /** @description The `next_cursor` of the previous page, given back with the same filters */
        cursor?: string;
      };
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['ApiKeyList'];
        };
      };
    };
  };
  createApiKey: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /** @description A key */
    requestBody: {
      content: {
        'application/json': components['schemas']['CreateApiKeyRequest'];
      };
    };
    responses: {
      /** @description Created */
      201: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['CreatedApiKey'];
        };
      };
    };
  };
  getApiKey: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['ApiKey'];
        };
      };
    };
  };
  deleteApiKey: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Deleted */
      204: {
        headers: {
          [name: string]: unknown;
        };
        content?: never;
      };
    };
  };
  getHealth: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['Health'];
        };
      };
    };
  };
  getReadiness: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Success */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': components['schemas']['Health'];
        };
      };
    };
  };
  onEmailEvent: {
    parameters: {
      query?: never;
      header: {
        /** @description The id of the event, the same for every attempt */
        'webhook-id': string;
        /** @description When this attempt was made, in Unix seconds */
        'webhook-timestamp': string;
        /** @description `v1,` and the signature in base64; two of them, separated by a space, while a secret is being rotated */
        'webhook-signature': string;
      };
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['EmailEvent'];
      };
    };
    responses: {
      /** @description Received. After any other status the event is sent again. */
      '2XX': {
        headers: {
          [name: string]: unknown;
        };
        content?: never;
      };
    };
  };
  onBatchEvent: {
    parameters: {
      query?: never;
      header: {
        /** @description The id of the event, the same for every attempt */
        'webhook-id': string;
        /** @description When this attempt was made, in Unix seconds */
        'webhook-timestamp': string;
        /** @description `v1,` and the signature in base64; two of them, separated by a space, while a secret is being rotated */
        'webhook-signature': string;
      };
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['BatchEvent'];
      };
    };
    responses: {
      /** @description Received. After any other status the event is sent again. */
      '2XX': {
        headers: {
          [name: string]: unknown;
        };
        content?: never;
      };
    };
  };
  onChatMessageEvent: {
    parameters: {
      query?: never;
      header: {
        /** @description The id of the event, the same for every attempt */
        'webhook-id': string;
        /** @description When this attempt was made, in Unix seconds */
        'webhook-timestamp': string;
        /** @description `v1,` and the signature in base64; two of them, separated by a space, while a secret is being rotated */
        'webhook-signature': string;
      };
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['ChatMessageEvent'];
      };
    };
    responses: {
      /** @description Received. After any other status the event is sent again. */
      '2XX': {
        headers: {
          [name: string]: unknown;
        };
        content?: never;
      };
    };
  };
  onDomainEvent: {
    parameters: {
      query?: never;
      header: {
        /** @description The id of the event, the same for every attempt */
        'webhook-id': string;
        /** @description When this attempt was made, in Unix seconds */
        'webhook-timestamp': string;
        /** @description `v1,` and the signature in base64; two of them, separated by a space, while a secret is being rotated */
        'webhook-signature': string;
      };
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['DomainEvent'];
      };
    };
    responses: {
      /** @description Received. After any other status the event is sent again. */
      '2XX': {
        headers: {
          [name: string]: unknown;
        };
        content?: never;
      };
    };
  };
  onSuppressionEvent: {
    parameters: {
      query?: never;
      header: {
        /** @description The id of the event, the same for every attempt */
        'webhook-id': string;
        /** @description When this attempt was made, in Unix seconds */
        'webhook-timestamp': string;
        /** @description `v1,` and the signature in base64; two of them, separated by a space, while a secret is being rotated */
        'webhook-signature': string;
      };
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['SuppressionEvent'];
      };
    };
    responses: {
      /** @description Received. After any other status the event is sent again. */
      '2XX': {
        headers: {
          [name: string]: unknown;
        };
        content?: never;
      };
    };
  };
  onWebhookEvent: {
    parameters: {
      query?: never;
      header: {
        /** @description The id of the event, the same for every attempt */
        'webhook-id': string;
        /** @description When this attempt was made, in Unix seconds */
        'webhook-timestamp': string;
        /** @description `v1,` and the signature in base64; two of them, separated by a space, while a secret is being rotated */
        'webhook-signature': string;
      };
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': components['schemas']['WebhookEvent'];
      };
    };
    responses: {
      /** @description Received. After any other status the event is sent again. */
      '2XX': {
        headers: {
          [name: string]: unknown;
        };
        content?: never;
      };
    };
  };
}
