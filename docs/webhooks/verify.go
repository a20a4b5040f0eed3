// Checks the two signatures of one saved delivery: WEBHOOK_SECRET=… go run verify.go HEADERS.json < BODY
//
// To install the library of Standard Webhooks: go get github.com/standard-webhooks/standard-webhooks/libraries
package main

// region: plain
import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
)

// endregion
import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
)

import (
	"net/http"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// region: plain

// isGenuine takes the value of X-Service-Signature, or "" if there is none.
func isGenuine(secret string, body []byte, signature string) bool {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	expected := "sha256=" + hex.EncodeToString(mac.Sum(nil))
	return hmac.Equal([]byte(expected), []byte(signature))
}

// endregion

// isGenuineAndRecent fails if the secret is malformed.
func isGenuineAndRecent(secret string, body []byte, headers http.Header) (bool, error) {
	verifier, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		return false, err
	}
	return verifier.Verify(body, headers) == nil, nil
}

func main() {
	secret := os.Getenv("WEBHOOK_SECRET")
	headers, err := readHeaders(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	body, err := io.ReadAll(os.Stdin)
	if err != nil {
		log.Fatal(err)
	}
	recent, err := isGenuineAndRecent(secret, body, headers)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("X-Service-Signature:", verdict(isGenuine(secret, body, headers.Get("X-Service-Signature"))))
	fmt.Println("webhook-signature:", verdict(recent))
}

func readHeaders(path string) (http.Header, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var given map[string]string
	if err := json.Unmarshal(text, &given); err != nil {
		return nil, err
	}
	headers := http.Header{}
	for name, value := range given {
		headers.Set(name, value)
	}
	return headers, nil
}

func verdict(valid bool) string {
	if valid {
		return "valid"
	}
	return "invalid"
}
