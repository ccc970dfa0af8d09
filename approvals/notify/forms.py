"""Forms of notifications: a person's quiet time, and an endpoint in the admin."""

from __future__ import annotations

import secrets
from typing import Any
from zoneinfo import available_timezones

from django import forms

from approvals.notify.errors import Undeliverable
from approvals.notify.models import Channel, Endpoint, QuietTime
from approvals.notify.post import checked


class QuietForm(forms.ModelForm):
    """When a person is left alone."""

    quiet_from = forms.TimeField(
        required=False,
        label="Quiet from",
        widget=forms.TimeInput(attrs={"type": "time"}, format="%H:%M"),
    )
    quiet_until = forms.TimeField(
        required=False,
        label="Quiet until",
        widget=forms.TimeInput(attrs={"type": "time"}, format="%H:%M"),
    )

    class Meta:
        model = QuietTime
        fields = ["time_zone", "quiet_from", "quiet_until", "digest"]
        labels = {"time_zone": "Time zone", "digest": "E-mails of low and medium risk"}
        help_texts = {"time_zone": "A name such as Europe/Berlin."}

    def clean_time_zone(self) -> str:
        """Only a zone that times can be told in."""
        name: str = self.cleaned_data["time_zone"]
        if name not in available_timezones():
            raise forms.ValidationError("There is no such time zone; write one like Europe/Berlin.")
        return name

    def clean(self) -> dict[str, Any] | None:
        """Both ends of the quiet time or none; two equal ones would say nothing."""
        cleaned = super().clean()
        start, end = self.cleaned_data.get("quiet_from"), self.cleaned_data.get("quiet_until")
        if (start is None) != (end is None) and not self.errors:
            self.add_error("quiet_until", "Give both times, or none for no quiet time.")
        if start is not None and start == end:
            self.add_error("quiet_until", "Must be another time than the one it starts at.")
        return cleaned


class EndpointForm(forms.ModelForm):
    """An endpoint; its address is entered here and never shown again."""

    address = forms.CharField(
        max_length=2_000,
        required=False,
        label="Address",
        widget=forms.TextInput(attrs={"autocomplete": "off", "size": 80}),
        help_text="https://… Stored sealed; leave it empty to keep the one that is there.",
    )
    new_secret: str = ""

    class Meta:
        model = Endpoint
        fields = ["project", "owner", "name", "channel", "min_risk", "is_active"]

    def clean_address(self) -> str:
        """An address that may be posted to."""
        url: str = self.cleaned_data["address"].strip()
        if not url and not self.instance.url:
            raise forms.ValidationError("Enter the address that is posted to.")
        if url:
            try:
                checked(url)
            except Undeliverable as error:
                raise forms.ValidationError(f"Cannot be used: {error}.") from None
        return url

    def save(self, commit: bool = True) -> Endpoint:
        """Keep the address, sealed; a webhook gets its signing key once, in `new_secret`."""
        endpoint, url = self.instance, self.cleaned_data["address"]
        if url:
            endpoint.url, endpoint.host = url, (checked(url).hostname or "")[:255]
        if endpoint.channel == Channel.WEBHOOK and not endpoint.secret:
            self.new_secret = f"ilw_{secrets.token_urlsafe(32)}"
            endpoint.secret = self.new_secret
        return super().save(commit)
