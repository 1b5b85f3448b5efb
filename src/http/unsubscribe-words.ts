/** Texts of the unsubscribe page. `{sender}` is replaced by a domain, `{address}` by a masked address. */
export interface Words {
  readonly ask: { readonly title: string; readonly text: string };
  readonly button: string;
  /** States that only marketing email is affected. */
  readonly rest: string;
  readonly done: { readonly title: string; readonly text: string };
  /** For an invalid link. */
  readonly unknown: { readonly title: string; readonly text: string };
  /** For any other error, such as an internal error or an exceeded rate limit. */
  readonly trouble: { readonly title: string; readonly text: string };
}

/** The texts by language. English is the default. */
export const WORDS = {
  en: {
    ask: {
      title: 'Unsubscribe',
      text: 'Do you want to stop getting marketing email from {sender} at {address}?',
    },
    button: 'Unsubscribe',
    rest: 'Other email, such as receipts or password resets, will still reach you.',
    done: { title: 'You are unsubscribed', text: '{sender} sends no more marketing email to {address}.' },
    unknown: {
      title: 'This link does not work',
      text: 'It may be incomplete. Please use the link in your most recent email.',
    },
    trouble: {
      title: 'Not possible right now',
      text: 'Something went wrong on our side, and you are not unsubscribed yet. Please try again in a minute.',
    },
  },
  de: {
    ask: {
      title: 'Abmelden',
      text: 'Möchten Sie keine Werbe-E-Mails von {sender} an {address} mehr erhalten?',
    },
    button: 'Abmelden',
    rest: 'Andere E-Mails, zum Beispiel Rechnungen oder Passwort-E-Mails, erreichen Sie weiterhin.',
    done: { title: 'Sie sind abgemeldet', text: '{sender} schickt keine Werbe-E-Mails mehr an {address}.' },
    unknown: {
      title: 'Dieser Link funktioniert nicht',
      text: 'Vielleicht ist er unvollständig. Bitte benutzen Sie den Link in der neuesten E-Mail.',
    },
    trouble: {
      title: 'Gerade nicht möglich',
      text: 'Bei uns ist etwas schiefgegangen; Sie sind noch nicht abgemeldet. Bitte versuchen Sie es in einer Minute noch einmal.',
    },
  },
  fr: {
    ask: {
      title: 'Se désabonner',
      text: 'Voulez-vous ne plus recevoir d’e-mails publicitaires de {sender} à l’adresse {address} ?',
    },
    button: 'Se désabonner',
    rest: 'Les autres e-mails, comme les factures ou les réinitialisations de mot de passe, continueront d’arriver.',
    done: {
      title: 'Désabonnement confirmé',
      text: '{sender} n’enverra plus d’e-mails publicitaires à {address}.',
    },
    unknown: {
      title: 'Ce lien ne fonctionne pas',
      text: 'Il est peut-être incomplet. Utilisez le lien de l’e-mail le plus récent.',
    },
    trouble: {
      title: 'Impossible pour le moment',
      text: 'Une erreur s’est produite de notre côté et le désabonnement n’a pas encore eu lieu. Réessayez dans une minute.',
    },
  },
  es: {
    ask: {
      title: 'Cancelar la suscripción',
      text: '¿Quiere dejar de recibir correos publicitarios de {sender} en {address}?',
    },
    button: 'Cancelar la suscripción',
    rest: 'Los demás correos, como facturas o cambios de contraseña, le seguirán llegando.',
    done: {
      title: 'Suscripción cancelada',
      text: '{sender} no enviará más correos publicitarios a {address}.',
    },
    unknown: {
      title: 'Este enlace no funciona',
      text: 'Puede que esté incompleto. Use el enlace del correo más reciente.',
    },
    trouble: {
      title: 'Ahora no es posible',
      text: 'Ha ocurrido un error por nuestra parte y la suscripción aún no está cancelada. Inténtelo de nuevo dentro de un minuto.',
    },
  },
} as const satisfies Record<string, Words>;
export type Language = keyof typeof WORDS;
